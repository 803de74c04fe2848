#!/usr/bin/env python3
"""Makes cli/font/DejaVuSans.ttf, the font of pictures, of the one in Debian's fonts-dejavu-core.

    pip install fonttools
    tools/make_font.py [/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf]

Kept are Latin, Greek and Cyrillic letters, punctuation, arrows and signs, without hints, ligatures and kerning:
759 kB become some 90.
"""

import sys
from pathlib import Path

from fontTools import subset

TARGET = Path(__file__).resolve().parent.parent / "cli" / "font" / "DejaVuSans.ttf"
SOURCE = "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf"
KEPT = [
    (0x20, 0x7E), (0xA0, 0x17F), (0x370, 0x3FF), (0x400, 0x45F), (0x490, 0x491),
    (0x2010, 0x2027), (0x2030, 0x203A), (0x20AC, 0x20AC), (0x2122, 0x2122), (0x2190, 0x2195),
    (0x2200, 0x2200), (0x2212, 0x2212), (0x221A, 0x221A), (0x221E, 0x221E), (0x2248, 0x2248),
    (0x2260, 0x2265), (0xFFFD, 0xFFFD),
]  # fmt: skip


def main():
    options = subset.Options()
    options.hinting = False
    options.layout_features = []
    options.drop_tables += ["GSUB", "GPOS", "GDEF", "kern", "FFTM"]
    options.name_IDs = [0, 1, 2, 5, 13, 14]   # whose it is, and on what terms
    options.name_languages = [0x409]
    options.notdef_outline = True
    font = subset.load_font(sys.argv[1] if len(sys.argv) > 1 else SOURCE, options)
    subsetter = subset.Subsetter(options)
    subsetter.populate(unicodes=[code for first, last in KEPT for code in range(first, last + 1)])
    subsetter.subset(font)
    TARGET.parent.mkdir(exist_ok=True)
    font["head"].modified = font["head"].created   # the same bytes each time
    font.recalcTimestamp = False
    subset.save_font(font, TARGET, options)
    print(f"{TARGET}: {TARGET.stat().st_size:,} bytes, {len(font.getBestCmap()):,} characters")


if __name__ == "__main__":
    main()
