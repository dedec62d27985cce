/// How addresses are compared: whatever the case of their ASCII letters, and of no others.
///
/// Some letters are told apart by everybody but Unicode's folding, as K and the sign of kelvins are;
/// who has such an address is somebody else.
enum EmailAddress {
  static func folded(_ address: String) -> String {
    let capitals = UInt8(ascii: "A")...UInt8(ascii: "Z")
    return String(
      decoding: address.utf8.map { capitals.contains($0) ? $0 | 0x20 : $0 },
      as: UTF8.self
    )
  }

  static func areSame(_ address: String, _ other: String) -> Bool {
    folded(address).utf8.elementsEqual(folded(other).utf8)
  }
}
