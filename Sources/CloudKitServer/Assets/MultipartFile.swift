import CloudKitWebServices
import Foundation

/// Takes the file out of a `multipart/form-data` body, piece by piece.
///
/// Some clients upload a file as a browser's form does. The first part is the file; what follows
/// it is passed over. A body that does not begin with the boundary its type names is the file
/// itself.
struct MultipartFile: Sendable {
  private enum State {
    /// Before the boundary has been seen whole.
    case start
    /// Among the part's header fields.
    case head
    case content
    /// Behind the file.
    case end
    /// It was no form.
    case plain
  }

  /// Bytes that the lines before the file may have.
  private static let headLimit = 16_384

  private let boundary: Data
  private var state = State.start
  /// What has come and is not decided yet.
  private var held = Data()
  /// Bytes of the head that `held` begins with.
  private var headRest = 0

  /// Nil where the type names no form, or no boundary for it.
  init?(contentType: String?) {
    guard let contentType else { return nil }
    let parts = contentType.split(separator: ";").map { $0.trimmingCharacters(in: .whitespaces) }
    guard parts.first?.lowercased() == "multipart/form-data",
      let parameter = parts.dropFirst().first(where: { $0.lowercased().hasPrefix("boundary=") })
    else { return nil }
    let name = parameter.dropFirst("boundary=".count)
      .trimmingCharacters(in: CharacterSet(charactersIn: "\""))
    // 70 characters are what the standard allows; a boundary of any length would have to be held.
    guard (1...70).contains(name.utf8.count) else { return nil }
    boundary = Data("--\(name)".utf8)
  }

  /// The bytes of the file that are known now.
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

  /// What is left when everything has come.
  mutating func finish() throws(ErrorDictionary) -> Data {
    switch state {
    case .end, .plain: return Data()
    // Less than a boundary has come.
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
    // The line break that ends the head may be the one that begins the ending of an empty file.
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
    // The ending may have come in part.
    let safe = held.count - (ending.count - 1)
    guard safe > headRest else { return Data() }
    let content = Data(held.prefix(safe).dropFirst(headRest))
    headRest = 0
    held = Data(held.dropFirst(safe))
    return content
  }
}
