extension DatabaseSchema {
  /// The text of a `.ckdb` file, byte for byte as Apple's tools export it.
  package var ckdb: String {
    var text = "DEFINE SCHEMA\n"
    for role in roles.sorted(by: inASCIIOrder) {
      text += "\n    CREATE ROLE \(written(role));\n"
    }
    for type in recordTypes.sorted(by: { inASCIIOrder($0.name, $1.name) }) {
      text += "\n    RECORD TYPE \(written(type.name)) (\n"
      let lines = lines(of: type)
      text += lines.map { "        " + $0 }.joined(separator: ",\n")
      text += lines.isEmpty ? "    );\n" : "\n    );\n"
    }
    return text
  }

  private func lines(of type: RecordTypeSchema) -> [String] {
    let fields = type.fields.sorted { inASCIIOrder($0.name, $1.name) }
    let width = fields.map { written($0.name).count }.max() ?? 0
    var lines = fields.map { field in
      let name = written(field.name)
      let padding = String(repeating: " ", count: width - name.count)
      let words =
        [field.type.text]
        + FieldIndex.allCases.filter(field.indexes.contains).map(\.rawValue)
      return "\(name)\(padding) \(words.joined(separator: " "))"
    }
    for grant in type.grants.sorted(by: { inASCIIOrder($0.role, $1.role) }) {
      let permissions = SchemaGrant.Permission.allCases.filter(grant.permissions.contains)
      guard !permissions.isEmpty else { continue }
      let words = permissions.map(\.rawValue).joined(separator: ", ")
      lines.append("GRANT \(words) TO \(written(grant.role))")
    }
    return lines
  }
}

private func inASCIIOrder(_ left: String, _ right: String) -> Bool {
  left.utf8.lexicographicallyPrecedes(right.utf8)
}

/// A name as the schema language writes it: without quotes if possible.
private func written(_ name: String) -> String {
  let isIdentifier =
    name.first.map { $0.isASCII && $0.isLetter } ?? false
    && name.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "_") }
  return isIdentifier && !SchemaWord.reserved.contains(name.uppercased()) ? name : "\"\(name)\""
}
