import CloudKitWebServices
import Foundation

/// A record whose fields conditions test.
///
/// The words of a text and the comparable values of a field are computed once for all conditions: a
/// client may send a hundred filters on one text of a megabyte, and a user may have hundreds of
/// subscriptions.
struct ComparedRecord {
  let record: StoredRecord
  let fields: [String: FieldValue]
  private var words: [String: Set<String>] = [:]
  private var values: [String: Values] = [:]

  /// The number of fields whose words or values were computed.
  var computedFields: Int { words.count + values.count }

  private struct Values {
    /// The values in the order of the field's list.
    var list: [Data]
    var members: Set<Data>
  }

  init(_ record: StoredRecord, _ fields: [String: FieldValue]) {
    self.record = record
    self.fields = fields
  }

  // MARK: Words

  mutating func contains(word: String, in names: [String]) -> Bool {
    for name in names where words(of: name).contains(word) { return true }
    return false
  }

  private mutating func words(of name: String) -> Set<String> {
    if let known = words[name] { return known }
    let found = Tokenizer.words(of: [name], in: fields)
    words[name] = found
    return found
  }

  // MARK: Values

  /// The comparable values of a field.
  mutating func values(of name: String) -> [Data] { compared(name).list }

  mutating func contains(anyOf operands: Set<Data>, in name: String) -> Bool {
    let values = compared(name)
    guard operands.count < values.members.count else {
      return values.members.contains(where: operands.contains)
    }
    return operands.contains(where: values.members.contains)
  }

  mutating func contains(allOf operands: Set<Data>, in name: String) -> Bool {
    operands.isSubset(of: compared(name).members)
  }

  private mutating func compared(_ name: String) -> Values {
    if let known = values[name] { return known }
    let list = record.comparableValues(of: name, fields)
    let found = Values(list: list, members: Set(list))
    values[name] = found
    return found
  }
}
