# For scripts that write texts into a C++ file, ${OUTPUT}.new: append_literals(TEXT) appends TEXT as string
# literals with commas between them. They are cut at line ends into at most 16,000 bytes each: compilers
# need to take no more than 65,536, and one of them takes no more than 16,380.
set(most 16000)

function(append_literals text)
  string(LENGTH "${text}" left)
  while(left GREATER 0)
    string(SUBSTRING "${text}" 0 ${most} piece)
    if(left GREATER most)
      string(FIND "${piece}" "\n" line_end REVERSE)
      if(line_end LESS 0)
        message(FATAL_ERROR "a line of more than ${most} bytes")
      endif()
      math(EXPR length "${line_end} + 1")
      string(SUBSTRING "${text}" 0 ${length} piece)
      string(SUBSTRING "${text}" ${length} -1 text)
    else()
      set(text "")
    endif()
    file(APPEND ${OUTPUT}.new "R\"pumice~(${piece})pumice~\",\n")
    string(LENGTH "${text}" left)
  endwhile()
endfunction()
