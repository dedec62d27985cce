/// The escapes in JSON's strings.
enum JSONEscapes {
  /// A text with the characters for its escapes of the form `\u0041`, if they are ASCII; other escapes stay
  /// as they are written.
  ///
  /// The text has been checked, so that each escape is complete.
  static func resolvingASCII(in bytes: Slice<UnsafeRawBufferPointer>) -> String {
    var text: [UInt8] = []
    var index = bytes.startIndex
    while index < bytes.endIndex {
      var length = 1
      if bytes[index] == UInt8(ascii: "\\") {
        length = bytes[index + 1] == UInt8(ascii: "u") ? 6 : 2
        let digits = String(decoding: bytes[index + 2..<index + length], as: UTF8.self)
        if let character = UInt8(digits, radix: 16), character < 0x80 {
          text.append(character)
          index += length
          continue
        }
      }
      text += bytes[index..<index + length]
      index += length
    }
    return String(decoding: text, as: UTF8.self)
  }
}
