import Foundation
import Testing

@testable import OpenCoreData

/// The published vectors of FIPS 180-4 and of NIST's Secure Hash Algorithm Validation System.
@Suite("SHA-2 of model descriptions")
struct SHA2Tests {
  @Test(
    "A published message has its published digest of 256 bits",
    arguments: [
      ("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
      ("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
      (
        "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
      ),
      (
        "abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqr"
          + "lmnopqrsmnopqrstnopqrstu",
        "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1"
      ),
    ]
  )
  func publishedVectors(message: String, digest: String) {
    #expect(hex(SHA2.digest256(Data(message.utf8))) == digest)
  }

  @Test("A million letters have the published digest")
  func longMessage() {
    let digest = SHA2.digest256(Data(repeating: UInt8(ascii: "a"), count: 1_000_000))
    #expect(hex(digest) == "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0")
  }

  /// The lengths around a block's end, where the padding changes its form.
  @Test(
    "Messages that end near a block's end have the digests of another implementation",
    arguments: [
      (55, "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318"),
      (56, "b35439a4ac6f0948b6d6f9e3c6af0f5f590ce20f1bde7090ef7970686ec6738a"),
      (63, "7d3e74a05d7db15bce4ad9ec0658ea98e3f06eeecf16b4c6fff2da457ddc2f34"),
      (64, "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb"),
    ]
  )
  func blockEnds(count: Int, digest: String) {
    let message = Data(repeating: UInt8(ascii: "a"), count: count)
    #expect(hex(SHA2.digest256(message)) == digest)
    #expect(hex(SHA2.digest256((Data([0]) + message).dropFirst())) == digest, "a slice")
  }

  /// The first is the digest of nothing; the others end near a block's end.
  @Test(
    "Messages have the digests of 512 bits of another implementation",
    arguments: [
      (
        0,
        "cf83e1357eefb8bdf1542850d66d8007d620e4050b5715dc83f4a921d36ce9ce"
          + "47d0d13c5d85f2b0ff8318d2877eec2f63b931bd47417a81a538327af927da3e"
      ),
      (
        3,
        "d6f644b19812e97b5d871658d6d3400ecd4787faeb9b8990c1e7608288664be7"
          + "7257104a58d033bcf1a0e0945ff06468ebe53e2dff36e248424c7273117dac09"
      ),
      (
        111,
        "fa9121c7b32b9e01733d034cfc78cbf67f926c7ed83e82200ef8681819692176"
          + "0b4beff48404df811b953828274461673c68d04e297b0eb7b2b4d60fc6b566a2"
      ),
      (
        112,
        "c01d080efd492776a1c43bd23dd99d0a2e626d481e16782e75d54c2503b5dc32"
          + "bd05f0f1ba33e568b88fd2d970929b719ecbb152f58f130a407c8830604b70ca"
      ),
      (
        119,
        "130396a75cb483f2eee8c56d8a668bb3d2641f5243212c0bee2bd33da096ad9e"
          + "b8179fe18f9eaacf76e09fae9de4c3f14ba13341e345be05bf76c182cc3468cb"
      ),
      (
        120,
        "f241de612b01aa2fa3cf01531d2a8e5e17fc761dfd48a704a834a47f57d6eade"
          + "7804ecc39be42fdef16ec6adeaf7c01c2fd0c4cc97d3860907cfa4a3b36d0c05"
      ),
      (
        127,
        "828613968b501dc00a97e08c73b118aa8876c26b8aac93df128502ab360f91ba"
          + "b50a51e088769a5c1eff4782ace147dce3642554199876374291f5d921629502"
      ),
      (
        128,
        "b73d1929aa615934e61a871596b3f3b33359f42b8175602e89f7e06e5f658a24"
          + "3667807ed300314b95cacdd579f3e33abdfbe351909519a846d465c59582f321"
      ),
      (
        200,
        "4b11459c33f52a22ee8236782714c150a3b2c60994e9acee17fe68947a3e6789"
          + "f31e7668394592da7bef827cddca88c4e6f86e4df7ed1ae6cba71f3e98faee9f"
      ),
    ]
  )
  func wideDigests(count: Int, digest: String) {
    let message = Data(repeating: UInt8(ascii: "a"), count: count)
    #expect(hex(SHA2.digest512(message)) == digest)
  }

  private func hex(_ bytes: Data) -> String {
    bytes.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
  }
}
