import CloudKitWebServices
import Foundation

/// Splits a text into words for token filters: without case and diacritics, and without stop words.
enum Tokenizer {
  /// The stop words in CKQuery's documentation.
  private static let stopWords: Set<String> = [
    "a", "an", "and", "are", "as", "at", "be", "but", "by", "for", "if", "in", "into", "is", "it",
    "no", "not", "of", "on", "or", "such", "that", "the", "their", "then", "there", "these",
    "they", "this", "to", "was", "will", "with",
  ]

  static func tokens(_ text: String) -> Set<String> {
    let folded = text.folding(options: [.caseInsensitive, .diacriticInsensitive], locale: nil)
    let words = folded.split { !$0.isLetter && !$0.isNumber }.map(String.init)
    return Set(words).subtracting(stopWords)
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
