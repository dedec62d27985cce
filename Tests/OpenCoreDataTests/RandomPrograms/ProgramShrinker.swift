/// Shrinks a failing program: removes parts as long as the rest still fails.
///
/// Delta debugging: large parts are tried first, then smaller ones, finally single steps.
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
