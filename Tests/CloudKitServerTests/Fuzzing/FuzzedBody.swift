import Foundation

/// Bytes for a type: its own structure, with or without a defect.
struct FuzzedBody {
  let words: FuzzedWords

  func bytes(of type: any Decodable.Type) -> Data {
    let body = FuzzedDecoder.body(of: type, words)
    for _ in 0..<words.pick([0, 0, 1, 1, 2, 3]) { change(words.pick(body.everything)) }
    // Most bodies are small: a large one takes as long as a hundred of them.
    let limit = words.chance(1, in: 100) ? 2_000_000 : 20_000
    var bytes = body.written(limit: limit)
    if words.chance(1, in: 8) { damage(&bytes) }
    return Data(bytes)
  }

  /// Changes the structure of a node.
  private func change(_ node: FuzzedNode) {
    switch words.index(below: 8) {
    case 0: node.content = other()
    case 1: node.content = .raw(nested())
    case 2: node.repetitions = words.pick([0, 2, 199, 200, 201, 1000, 5000])
    case 3: widen(node)
    case 4:
      guard case .object(var members) = node.content, !members.isEmpty else { fallthrough }
      // The same name again, with another value.
      members.append((words.pick(members).key, FuzzedNode(other())))
      node.content = .object(members)
    case 5:
      guard case .object(var members) = node.content, !members.isEmpty else { fallthrough }
      members.remove(at: words.index(below: members.count))
      node.content = .object(members)
    default:
      // A key of another type, including the storage's own keys.
      guard case .object(let members) = node.content else {
        node.content = other()
        return
      }
      node.content = .object(members + [(words.key(), FuzzedNode(other()))])
    }
  }

  private func other() -> FuzzedNode.Content {
    switch words.index(below: 7) {
    case 0: .null
    case 1: .boolean(words.chance(1, in: 2))
    case 2: .number(words.number())
    case 3: .array([])
    case 4: .object([])
    case 5: .object([(words.key(), FuzzedNode(.number(words.number())))])
    default: .string(words.text(for: words.key()))
    }
  }

  private func widen(_ node: FuzzedNode) {
    guard case .object(var members) = node.content else {
      node.content = .array([FuzzedNode(other())])
      node.repetitions = words.pick([100, 1000, 20_000])
      return
    }
    for number in 0..<words.pick([31, 33, 200]) {
      members.append(("member_\(number)", FuzzedNode(other())))
    }
    node.content = .object(members)
  }

  /// Nested deeper than recursive readers allow.
  private func nested() -> [UInt8] {
    let depth = words.chance(1, in: 10) ? 100_000 : words.pick([10, 63, 64, 65, 511, 512, 513])
    let isObject = words.chance(1, in: 2)
    let opening = Array((isObject ? #"{"a":"# : "[").utf8)
    let closing = Array((isObject ? "}" : "]").utf8)
    // Sometimes it is not closed.
    let isClosed = words.chance(3, in: 4)
    var bytes: [UInt8] = []
    for _ in 0..<depth { bytes += opening }
    bytes.append(UInt8(ascii: "1"))
    if isClosed { for _ in 0..<depth { bytes += closing } }
    return bytes
  }

  private func damage(_ bytes: inout [UInt8]) {
    for _ in 0...words.index(below: 3) where !bytes.isEmpty {
      let place = words.index(below: bytes.count)
      switch words.index(below: 4) {
      case 0: bytes.removeSubrange(place...)
      case 1: bytes[place] = UInt8(truncatingIfNeeded: words.random.next())
      case 2: bytes.insert(UInt8(truncatingIfNeeded: words.random.next()), at: place)
      default: bytes.removeSubrange(place..<min(bytes.count, place + words.index(below: 12)))
      }
    }
  }
}
