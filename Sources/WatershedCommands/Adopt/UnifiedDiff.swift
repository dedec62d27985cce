/// Two versions of a text as `diff -u` shows them.
struct UnifiedDiff: CustomStringConvertible {
  /// A line of either version, and where it stands.
  private struct Line {
    var mark: Character
    var text: Substring
    /// How many lines of the old and the new version are before it.
    var old: Int
    var new: Int
  }

  private static let context = 3

  var path: String
  private var lines: [Line] = []

  init(path: String, from old: String, to new: String) {
    self.path = path
    let before = Self.lines(of: old)
    let after = Self.lines(of: new)
    var removed: Set<Int> = []
    var inserted: Set<Int> = []
    for change in after.difference(from: before) {
      switch change {
      case .remove(let offset, _, _): removed.insert(offset)
      case .insert(let offset, _, _): inserted.insert(offset)
      }
    }
    var (i, j) = (0, 0)
    while i < before.count || j < after.count {
      if i < before.count, removed.contains(i) {
        lines.append(Line(mark: "-", text: before[i], old: i, new: j))
        i += 1
      } else if j < after.count, inserted.contains(j) {
        lines.append(Line(mark: "+", text: after[j], old: i, new: j))
        j += 1
      } else {
        lines.append(Line(mark: " ", text: before[i], old: i, new: j))
        i += 1
        j += 1
      }
    }
  }

  private static func lines(of text: String) -> [Substring] {
    let lines = text.split(separator: /\r?\n/, omittingEmptySubsequences: false)
    // The end of the last line begins no other one.
    return lines.last?.isEmpty == true ? lines.dropLast() : lines
  }

  var description: String {
    let changed = lines.indices.filter { lines[$0].mark != " " }
    guard let first = changed.first else { return "" }
    var hunks: [Range<Int>] = []
    var current = max(0, first - Self.context)..<min(lines.count, first + Self.context + 1)
    for index in changed.dropFirst() {
      let end = min(lines.count, index + Self.context + 1)
      if index - Self.context <= current.upperBound {
        current = current.lowerBound..<end
      } else {
        hunks.append(current)
        current = max(0, index - Self.context)..<end
      }
    }
    hunks.append(current)
    return "--- \(path)\n+++ \(path)\n" + hunks.map(hunk).joined()
  }

  private func hunk(_ range: Range<Int>) -> String {
    let part = lines[range]
    guard let first = part.first else { return "" }
    let old = part.count { $0.mark != "+" }
    let new = part.count { $0.mark != "-" }
    return "@@ -\(first.old + 1),\(old) +\(first.new + 1),\(new) @@\n"
      + part.map { "\($0.mark)\($0.text)\n" }.joined()
  }
}
