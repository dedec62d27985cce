/// Finds duplicate keys in an object of a JSON text; JSON readers silently keep one of them.
enum RepeatedKeys {
  struct Finding: Hashable {
    var key: String
    var line: Int
  }

  /// The text must be valid JSON.
  static func find(in text: String) -> [Finding] {
    var found: [Finding] = []
    /// The keys of each object around the current position; nil for a list.
    var open: [Set<String>?] = []
    var line = 1
    var last: String?
    var string: String?
    var isEscaped = false
    for character in text {
      if character.isNewline { line += 1 }
      if let begun = string {
        if !isEscaped, character == "\"" {
          last = begun
          string = nil
        } else {
          string = begun + String(character)
        }
        isEscaped = !isEscaped && character == "\\"
        continue
      }
      switch character {
      case "\"": string = ""
      case "{": open.append([])
      case "[": open.append(nil)
      case "}", "]": _ = open.popLast()
      case ":":
        guard let key = last, var keys = open.last ?? nil else { continue }
        if !keys.insert(key).inserted { found.append(Finding(key: key, line: line)) }
        open[open.count - 1] = keys
      default: break
      }
    }
    return found
  }
}
