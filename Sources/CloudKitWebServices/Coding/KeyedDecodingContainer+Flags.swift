extension KeyedDecodingContainer {
  /// Decodes a Boolean as clients write it: those that hold it as a number object send 0 and 1.
  ///
  /// It shadows the standard library's method of the same name in this module.
  func decodeIfPresent(_ type: Bool.Type, forKey key: Key) throws -> Bool? {
    guard contains(key), try !decodeNil(forKey: key) else { return nil }
    do {
      return try decode(Bool.self, forKey: key)
    } catch {
      switch try? decode(Int.self, forKey: key) {
      case 0: return false
      case 1: return true
      default: throw error
      }
    }
  }
}
