import Effects
import Foundation
import Testing

/// The folding of texts by pieces, against Foundation's of the whole text.
@Suite("Folding by pieces")
struct PieceFoldingTests {
  private static let options: [String.CompareOptions] = [
    [.caseInsensitive], [.diacriticInsensitive], [.caseInsensitive, .diacriticInsensitive],
    [.caseInsensitive, .diacriticInsensitive, .widthInsensitive],
  ]

  /// All assigned scalars but those of private use, in groups.
  private static func groups(of size: Int) -> [[Unicode.Scalar]] {
    var groups: [[Unicode.Scalar]] = [[]]
    for value in UInt32(1)...0x10FFFF {
      guard let scalar = Unicode.Scalar(value) else { continue }
      switch scalar.properties.generalCategory {
      case .unassigned, .privateUse, .surrogate: continue
      default: break
      }
      if groups[groups.count - 1].count == size { groups.append([]) }
      groups[groups.count - 1].append(scalar)
    }
    return groups
  }

  @Test("Every scalar has the same folding in pieces, after and before bases of several scripts")
  func scalars() {
    for group in Self.groups(of: 64) {
      // Pieces of one byte end before every base.
      let text = group.map { "a\($0)\u{0301}É\($0)\u{05D0}\u{05B7}\($0)" }.joined()
      for options in Self.options.suffix(2) {
        let whole = text.folding(options: options, locale: nil)
        let pieces = text.foldedInPieces(options, of: 1, atMost: .max)
        #expect(pieces.utf8.elementsEqual(whole.utf8), "\(group.first?.value ?? 0)")
      }
    }
  }

  @Test("The locale of derived attributes changes nothing", arguments: options)
  func locale(options: String.CompareOptions) {
    let text = "Straße İstanbul IĞDIR ÀÉÎ ﬁ ｱﾞ Ωμέγα"
    let whole = text.folding(options: options, locale: Locale(identifier: "en_US_POSIX"))
    #expect(text.foldedInPieces(options).utf8.elementsEqual(whole.utf8))
  }

  @Test("A text is the same in pieces of any size", arguments: options)
  func sizes(options: String.CompareOptions) {
    let text = String(
      repeating: "Crème Brûlée, e\u{0301}\u{0323}x ΆΈ שָׁלוֹם が 각 👩‍👩‍👧 ",
      count: 40
    )
    let whole = text.folding(options: options, locale: nil)
    for size in [1, 2, 7, 64, 256] {
      let pieces = text.foldedInPieces(options, of: size, atMost: 1024)
      #expect(pieces.utf8.elementsEqual(whole.utf8), "\(size)")
    }
    #expect(text.foldedInPieces(options).utf8.elementsEqual(whole.utf8))
    #expect(
      "Plain ASCII".foldedInPieces(options) == "Plain ASCII".folding(options: options, locale: nil)
    )
  }

  /// Foundation alone takes 46 seconds for 800,000 of these letters, and four times that for twice
  /// as many: the test ends soon or, in practice, never.
  @Test("A text of decomposed letters is folded in time proportional to its length")
  func length() {
    let text = String(repeating: "A\u{0301}", count: 2_000_000)
    let folded = text.foldedInPieces([.caseInsensitive, .diacriticInsensitive])
    #expect(folded.utf8.count == 2_000_000)
    #expect(folded.utf8.allSatisfy { $0 == UInt8(ascii: "a") })
    // A run without any base ends too.
    let marks = "\u{05D0}" + String(repeating: "\u{05B7}\u{05B4}", count: 500_000)
    #expect(!marks.foldedInPieces([.diacriticInsensitive]).isEmpty)
  }
}
