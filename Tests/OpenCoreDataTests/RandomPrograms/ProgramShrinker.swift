/// Makes a failing program short: parts are left out as long as what remains fails.
///
/// Delta debugging: first large parts are tried, then smaller ones, at last single steps.
enum ProgramShrinker {
  static func shrink(
    _ lines: [ProgramLine],
    fails: ([ProgramLine]) throws -> Bool
  ) rethrows -> [ProgramLine] {
    var lines = lines
    var size = max(lines.count / 2, 1)
    while true {
      var hasShrunk = false
      var start = 0
      while start < lines.count {
        var shorter = lines
        shorter.removeSubrange(start..<min(start + size, lines.count))
        if try fails(shorter) {
          lines = shorter
          hasShrunk = true
        } else {
          start += size
        }
      }
      if size > 1 {
        size /= 2
      } else if !hasShrunk {
        return lines
      }
    }
  }
}
