/// Separators among the bytes of a text.
///
/// `split(separator: "/")` and `contains("/")` compare `Character`s, which are clusters of scalars. The sender of a text
/// can join a separator to its neighbor, with U+0301 behind it or U+0D4E before it (Unicode Standard Annex 29, GB9 and
/// GB9b): Swift no longer finds it, while browsers, proxies and the kernel, which read bytes, do.
extension StringProtocol where SubSequence == Substring {
  /// The parts between the separators, which are ASCII.
  package func split(
    ascii separator: Unicode.Scalar,
    maxSplits: Int = .max,
    omittingEmptySubsequences: Bool = true
  ) -> [Substring] {
    self[...].utf8.split(
      separator: UInt8(ascii: separator),
      maxSplits: maxSplits,
      omittingEmptySubsequences: omittingEmptySubsequences
    ).map { Substring($0) }
  }

  /// What is before the first separator; all of the text if it has none.
  package func prefix(before separator: Unicode.Scalar) -> Substring {
    let byte = UInt8(ascii: separator)
    return Substring(self[...].utf8.prefix { $0 != byte })
  }

  package func contains(ascii scalar: Unicode.Scalar) -> Bool {
    utf8.contains(UInt8(ascii: scalar))
  }
}
