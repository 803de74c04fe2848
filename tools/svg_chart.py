"""What the charts of tools/plot_*.py are made of: axes, marks, words and the page, as SVG."""

import math


def human(value):
    for unit, size in (("M", 10**6), ("k", 10**3)):
        if value >= size:
            return f"{value / size:g}{unit}"
    return f"{value:g}"


class LogAxis:
    """Logarithmic, from one pixel to another."""

    def __init__(self, values, begin, end):
        self.low, self.high = math.log10(min(values)), math.log10(max(values))
        margin = 0.04 * (self.high - self.low)
        self.low, self.high = self.low - margin, self.high + margin
        self.begin, self.end = begin, end

    def __call__(self, value):
        share = (math.log10(value) - self.low) / (self.high - self.low)
        return self.begin + share * (self.end - self.begin)

    def ticks(self):
        for decade in range(math.floor(self.low), math.ceil(self.high) + 1):
            for step in (1, 2, 5):
                value = step * 10.0**decade
                if self.low <= math.log10(value) <= self.high:
                    yield value


def marker(shape, x, y, colour):
    r = 4.5
    if shape == "circle":
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{r}" fill="{colour}"/>'
    corners = {
        "square": [(-1, -1), (1, -1), (1, 1), (-1, 1)],
        "diamond": [(0, -1.3), (1.3, 0), (0, 1.3), (-1.3, 0)],
        "triangle": [(0, -1.2), (1.2, 1), (-1.2, 1)],
        "down": [(0, 1.2), (1.2, -1), (-1.2, -1)],
        "plus": [
            (-0.4, -1.2), (0.4, -1.2), (0.4, -0.4), (1.2, -0.4), (1.2, 0.4), (0.4, 0.4),
            (0.4, 1.2), (-0.4, 1.2), (-0.4, 0.4), (-1.2, 0.4), (-1.2, -0.4), (-0.4, -0.4),
        ],
    }[shape]
    points = " ".join(f"{x + r * a:.1f},{y + r * b:.1f}" for a, b in corners)
    return f'<polygon points="{points}" fill="{colour}"/>'


def text(x, y, words, anchor="middle", more=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" {more}>{words}</text>'


def frame(box, title, words, x_ticks, y_ticks):
    """Title, the words along both axes, and a grid; `box`: left, top, right, bottom; a tick is (pixel, words)."""
    left, top, right, bottom = box
    x_words, y_words = words
    parts = [
        text(left, 26, title, "start", 'font-size="16"'),
        text((left + right) / 2, bottom + 48, x_words),
        text(20, (top + bottom) / 2, y_words, more=f'transform="rotate(-90 20 {(top + bottom) / 2:.0f})"'),
    ]
    for at, value in x_ticks:
        parts.append(f'<path d="M{at:.1f} {top}V{bottom}" stroke="#ddd"/>')
        parts.append(text(at, bottom + 20, value))
    for at, value in y_ticks:
        parts.append(f'<path d="M{left} {at:.1f}H{right}" stroke="#ddd"/>')
        parts.append(text(left - 8, at + 4, value, "end"))
    return parts


def page(width, height, parts):
    """The parts on white, as a file."""
    head = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        'font-family="sans-serif" font-size="13" fill="#222">',
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
    ]
    return "\n".join([*head, *parts, "</svg>", ""])
