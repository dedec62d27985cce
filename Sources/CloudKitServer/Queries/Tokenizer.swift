import CloudKitWebServices
import Effects
import Foundation

/// Splits a text into words for token filters: without case and diacritics, and without stop words.
enum Tokenizer {
  /// The stop words in CKQuery's documentation.
  private static let stopWords: Set<String> = [
    "a", "an", "and", "are", "as", "at", "be", "but", "by", "for", "if", "in", "into", "is", "it",
    "no", "not", "of", "on", "or", "such", "that", "the", "their", "then", "there", "these",
    "they", "this", "to", "was", "will", "with",
  ]

  /// Bytes of a word that are compared: as many as an index has, and up to three more.
  ///
  /// The end of a text without spaces is no word's, and a set of words hashes each of them.
  private static let wordSize = 256

  static func tokens(_ text: String) -> Set<String> {
    let folded = text.foldedInPieces([.caseInsensitive, .diacriticInsensitive])
    let words = folded.split { !$0.isLetter && !$0.isNumber }.map(start)
    return Set(words).subtracting(stopWords)
  }

  /// The scalars of a word that begin within its first bytes.
  private static func start(of word: Substring) -> String {
    guard word.utf8.count > wordSize else { return String(word) }
    var size = 0
    let scalars = word.unicodeScalars.prefix { scalar in
      defer { size += UTF8.width(scalar) }
      return size < wordSize
    }
    return String(scalars)
  }

  /// The words of all strings in the fields.
  static func words(of names: [String], in fields: [String: FieldValue]) -> Set<String> {
    names.reduce(into: []) { words, name in
      switch fields[name]?.content {
      case .string(let text): words.formUnion(tokens(text))
      case .stringList(let texts): for text in texts { words.formUnion(tokens(text)) }
      default: break
      }
    }
  }
}
