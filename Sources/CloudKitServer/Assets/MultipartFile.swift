import CloudKitWebServices
import Foundation

/// Extracts the file from a `multipart/form-data` body, piece by piece.
///
/// Some clients upload a file like a browser's form. The first part is the file; what follows is
/// ignored. A body that does not begin with the boundary of its content type is the file itself.
struct MultipartFile: Sendable {
  private enum State {
    /// Before the complete boundary was received.
    case start
    /// In the part's header fields.
    case head
    case content
    /// After the file.
    case end
    /// The body is no form.
    case plain
  }

  /// The most bytes of the lines before the file.
  private static let headLimit = 16_384

  private let boundary: Data
  private var state = State.start
  /// Received bytes that are not classified yet.
  private var held = Data()
  /// The bytes of the head at the start of `held`.
  private var headRest = 0

  /// Returns nil if the content type is no form, or has no boundary.
  init?(contentType: String?) {
    guard let contentType else { return nil }
    let parts = contentType.split(ascii: ";").map { $0.trimmingCharacters(in: .whitespaces) }
    guard parts.first?.lowercased() == "multipart/form-data",
      let parameter = parts.dropFirst().first(where: { $0.lowercased().hasPrefix("boundary=") })
    else { return nil }
    let name = parameter.dropFirst("boundary=".count)
      .trimmingCharacters(in: CharacterSet(charactersIn: "\""))
    // The standard allows 70 characters; a longer boundary would need unlimited buffering.
    guard (1...70).contains(name.utf8.count) else { return nil }
    boundary = Data("--\(name)".utf8)
  }

  /// The bytes of the file that are certain so far.
  mutating func take(_ data: Data) throws(ErrorDictionary) -> Data {
    if state == .end { return Data() }
    if state == .plain { return data }
    held.append(data)
    if state == .start { readStart() }
    if state == .head { try readHead() }
    switch state {
    case .content: return readContent()
    case .plain:
      defer { held = Data() }
      return held
    case .start, .head, .end: return Data()
    }
  }

  /// The remaining bytes after the whole body was received.
  mutating func finish() throws(ErrorDictionary) -> Data {
    switch state {
    case .end, .plain: return Data()
    // Less than a boundary was received.
    case .start: return held
    case .head, .content:
      throw ErrorDictionary(.badRequest, "the multipart body is incomplete")
    }
  }

  private mutating func readStart() {
    guard held.count >= boundary.count else {
      if !boundary.starts(with: held) { state = .plain }
      return
    }
    state = held.starts(with: boundary) ? .head : .plain
  }

  private mutating func readHead() throws(ErrorDictionary) {
    let blankLine = Data("\r\n\r\n".utf8)
    guard let range = held.range(of: blankLine) else {
      guard held.count <= Self.headLimit else {
        throw ErrorDictionary(.badRequest, "the head of the multipart body is too long")
      }
      return
    }
    // The line break that ends the head may also begin the ending of an empty file.
    headRest = 2
    held = Data(held[(range.upperBound - headRest)...])
    state = .content
  }

  private mutating func readContent() -> Data {
    let ending = Data("\r\n".utf8) + boundary
    if let range = held.range(of: ending) {
      state = .end
      defer { held = Data() }
      return Data(held[..<range.lowerBound].dropFirst(headRest))
    }
    // Part of the ending may have been received.
    let safe = held.count - (ending.count - 1)
    guard safe > headRest else { return Data() }
    let content = Data(held.prefix(safe).dropFirst(headRest))
    headRest = 0
    held = Data(held.dropFirst(safe))
    return content
  }
}
