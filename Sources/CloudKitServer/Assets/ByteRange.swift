/// The part of a file that a `Range` header requests (RFC 9110, 14).
enum ByteRange: Hashable {
  /// No header, an invalid one, or several ranges at once: the whole file is a valid reply to all.
  case whole
  case part(Range<Int64>)
  /// The file has no bytes in the range.
  case unsatisfiable

  init(_ header: String?, size: Int64) {
    self = .whole
    guard let header, let text = Self.single(header) else { return }
    let ends = text.split(ascii: "-", maxSplits: 1, omittingEmptySubsequences: false)
    guard ends.count == 2 else { return }
    if ends[0].isEmpty {
      guard let count = Self.number(ends[1]) else { return }
      self =
        count == 0 || size == 0 ? .unsatisfiable : .part(max(0, size - count)..<size)
      return
    }
    guard let first = Self.number(ends[0]) else { return }
    var last = size - 1
    if !ends[1].isEmpty {
      guard let asked = Self.number(ends[1]), asked >= first else { return }
      last = min(last, asked)
    }
    self = first < size ? .part(first..<(last + 1)) : .unsatisfiable
  }

  /// The one range of a header in bytes.
  private static func single(_ header: String) -> Substring? {
    guard header.lowercased().hasPrefix("bytes=") else { return nil }
    let text = header.dropFirst("bytes=".count)
    guard !text.contains(ascii: ",") else { return nil }
    return Substring(text.filter { $0 != " " && $0 != "\t" })
  }

  /// Parses digits alone; a number beyond all sizes is treated as the maximum.
  private static func number(_ text: Substring) -> Int64? {
    guard !text.isEmpty, text.utf8.allSatisfy({ (48...57).contains($0) }) else { return nil }
    return Int64(text) ?? .max - 1
  }
}
