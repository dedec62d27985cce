import CloudKitServer
import CloudKitServerHTTP
import CloudKitWebServices
import Foundation

/// A configuration file: its values, or its problems with their lines.
struct ConfigurationFile {
  private(set) var values: [String: Any] = [:]
  /// Each with the file's name and the line.
  private(set) var problems: [String] = []

  private let name: String
  private let text: String

  init(path: String) throws(ConfigurationSource.Unreadable) {
    name = (path as NSString).lastPathComponent
    let data: Data
    do {
      data = try Data(contentsOf: URL(fileURLWithPath: path))
    } catch {
      throw .init(problems: ["the file \(path) cannot be read: \(error.systemReason)"])
    }
    text = String(decoding: data, as: UTF8.self)
    let object: Any
    do {
      object = try JSONSerialization.jsonObject(with: data)
    } catch {
      problems = [syntaxError(error)]
      return
    }
    guard let values = object as? [String: Any] else {
      problems = ["\(name): the file does not hold an object"]
      return
    }
    problems += RepeatedKeys.find(in: text).map {
      "\(name):\($0.line): the key '\($0.key)' occurs twice"
    }
    self.values = check(values, ServerConfiguration.keys, in: nil)
    for section in ServerConfiguration.sections {
      guard let object = self.values[section.name] as? [String: Any] else { continue }
      self.values[section.name] = check(object, section.keys, in: section.name)
    }
  }

  // MARK: Keys and values

  /// Records the problems, and returns the valid values.
  private mutating func check(
    _ values: [String: Any],
    _ keys: [ServerConfiguration.Key],
    in section: String?
  ) -> [String: Any] {
    var good = values
    let prefix = section.map { $0 + "." } ?? ""
    for key in values.keys.sorted() {
      guard let known = keys.first(where: { $0.name == key }) else {
        let guess = Self.nearest(to: key, keys.map(\.name)).map { "; did you mean '\($0)'?" } ?? ""
        problems.append("\(place(of: key)): there is no key '\(prefix)\(key)'\(guess)")
        good[key] = nil
        continue
      }
      if let value = values[key], !known.kind.takes(value) {
        problems.append("\(place(of: key)): \(prefix)\(key): \(known.kind.rawValue) is expected")
        good[key] = nil
      } else if let word = values[key] as? String, let words = known.words,
        !words.contains(word)
      {
        problems.append(
          "\(place(of: key)): \(prefix)\(key): there is no '\(word)'; it is "
            + words.joined(separator: " or ")
        )
        good[key] = nil
      }
    }
    return good
  }

  /// The known key with at most two letters missing, doubled, swapped or wrong.
  static func nearest(to key: String, _ known: [String]) -> String? {
    let near = known.map { ($0, distance(key.lowercased(), $0.lowercased())) }
      .min { ($0.1, $0.0) < ($1.1, $1.0) }
    guard let near, near.1 <= 2 else {
      return known.sorted().first { $0.lowercased().hasPrefix(key.lowercased()) }
    }
    return near.0
  }

  private static func distance(_ left: String, _ right: String) -> Int {
    let letters = Array(right)
    var row = Array(0...letters.count)
    for (index, letter) in left.enumerated() {
      var next = [index + 1]
      for (place, other) in letters.enumerated() {
        let changed = row[place] + (letter == other ? 0 : 1)
        next.append(min(changed, row[place + 1] + 1, next[place] + 1))
      }
      row = next
    }
    return row[letters.count]
  }

  // MARK: Places

  private func place(of key: String) -> String {
    let pattern = #""\#(NSRegularExpression.escapedPattern(for: key))"\s*:"#
    guard let range = text.range(of: pattern, options: .regularExpression) else { return name }
    return "\(name):\(text[..<range.lowerBound].count { $0.isNewline } + 1)"
  }

  private func syntaxError(_ error: any Error) -> String {
    let detail =
      (error as NSError).userInfo["NSDebugDescription"] as? String
      ?? (error as NSError).localizedDescription
    var end = text.endIndex
    // Foundation's error counts characters from the start of the file.
    if let number = detail.firstMatch(of: /around character (\d+)/).flatMap({ Int($0.output.1) }) {
      end = text.index(text.startIndex, offsetBy: number, limitedBy: text.endIndex) ?? end
    }
    let before = text[..<end]
    let line = before.count { $0.isNewline } + 1
    let column = before.reversed().prefix { !$0.isNewline }.count + 1
    let what = detail.replacing(/\ around character \d+\.?/, with: "")
    return "\(name):\(line):\(column): this is not JSON: \(what)"
  }
}

extension ServerConfiguration.Kind {
  /// Whether a value in a file has this kind; null is accepted for an absent value.
  fileprivate func takes(_ value: Any) -> Bool {
    if value is NSNull { return true }
    let isFlag = (value as? NSNumber).map { JSONFlag.isFlag($0) } ?? (value is Bool)
    return switch self {
    case .text: value is String
    case .number: !isFlag && value is NSNumber
    case .wholeNumber:
      !isFlag && ((value as? NSNumber).map { $0.doubleValue.rounded() == $0.doubleValue } ?? false)
    case .flag: isFlag
    case .list: value is [String]
    case .object: value is [String: Any]
    }
  }
}

private enum JSONFlag {
  /// Foundation represents JSON's true and false as numbers.
  static func isFlag(_ number: NSNumber) -> Bool { String(cString: number.objCType) == "c" }
}
