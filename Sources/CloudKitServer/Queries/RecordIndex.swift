import CloudKitWebServices

/// The contents of an index; its name encodes them, so that writing a record needs no schema.
enum RecordIndex: Hashable, Sendable {
  /// The values of one field: an entry for each element of a list, and one for a missing value.
  case values(String)
  /// The words of strings in these fields.
  case words([String])

  private static let wordsPrefix = "words("

  var name: String {
    switch self {
    case .values(let field): field
    // Names of fields contain neither commas nor parentheses.
    case .words(let fields): Self.wordsPrefix + fields.joined(separator: ",") + ")"
    }
  }

  init(name: String) {
    if name.hasPrefix(Self.wordsPrefix), name.hasSuffix(")") {
      let fields = name.dropFirst(Self.wordsPrefix.count).dropLast()
      self = .words(fields.split(ascii: ",").map(String.init))
    } else {
      self = .values(name)
    }
  }

  /// The keys of a record in this index, in order.
  func keys(of record: StoredRecord, _ fields: [String: FieldValue]) -> [IndexKey] {
    switch self {
    case .values(let field):
      let values = record.indexValues(of: field, fields)
      guard values.count > 1 else { return [IndexKey(values.first ?? .missing)] }
      return Set(values.map(IndexKey.init)).sorted()
    case .words(let names):
      return Tokenizer.words(of: names, in: fields).map { IndexKey(.text($0)) }.sorted()
    }
  }
}
