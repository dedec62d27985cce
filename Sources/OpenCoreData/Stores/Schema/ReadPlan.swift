/// The columns that a fetch of an entity reads, and the positions of each concrete entity's values
/// among them.
package struct ReadPlan: Sendable {
  /// One value of a row: the result column and the value's form.
  struct Step: Sendable {
    var position: Int
    var form: Form

    enum Form: Sendable {
      case none
      case integer
      case double
      case date
      case decimal
      case string
      case url
      case uuid
      case data
      case externalData
      case key(Int32)
      case keyAndEntity(entityPosition: Int)
    }
  }

  /// `Z_PK`, `Z_ENT`, `Z_OPT`, then the values, each with its table's alias.
  let selection: String
  /// The steps of each concrete entity, by row index.
  let steps: [Int32: [Step]]
  /// The only entity, if there is one, which saves a look-up for each row.
  let single: (number: Int32, steps: [Step])?

  static let empty = ReadPlan(selection: "", steps: [:], single: nil)
  /// The alias of the fetched table.
  static let alias = "t0"

  private init(selection: String, steps: [Int32: [Step]], single: (Int32, [Step])?) {
    self.selection = selection
    self.steps = steps
    self.single = single
  }

  /// Creates a plan for the entities of one table; with `linksAlone`, attributes are not read.
  init(entities: [EntityTable], linksAlone: Bool = false) {
    var terms = ["t0.Z_PK", "t0.Z_ENT", "t0.Z_OPT"]
    var positions: [String: Int] = [:]
    func position(of term: String) -> Int {
      if let known = positions[term] { return known }
      positions[term] = terms.count
      terms.append(term)
      return terms.count - 1
    }
    var steps: [Int32: [Step]] = [:]
    for entity in entities {
      steps[entity.number] = entity.columns.map { column in
        guard column.isStored, !linksAlone || column.form.isReference else {
          return Step(position: 0, form: .none)
        }
        let own = position(of: "t0.\(column.name)")
        let form: Step.Form
        switch column.form {
        case .none, .foreignKey: form = .none
        case .integer: form = .integer
        case .double: form = .double
        case .date: form = .date
        case .decimal: form = .decimal
        case .string: form = .string
        case .url: form = .url
        case .uuid: form = .uuid
        case .data: form = .data
        case .externalData: form = .externalData
        case .key(let number): form = .key(number)
        case .keyAndEntity(let companion, let isColumn):
          form = .keyAndEntity(
            entityPosition: position(of: isColumn ? "t0.\(companion)" : companion)
          )
        }
        return Step(position: own, form: form)
      }
    }
    selection = terms.joined(separator: ", ")
    self.steps = steps
    single =
      entities.count == 1
      ? entities.first.map { ($0.number, steps[$0.number] ?? []) } : nil
  }
}

/// The statements that write rows of one entity.
package struct WritePlan: Sendable {
  /// The stored slots in column order, by row index.
  let slots: [Int]
  let insert: String
  /// Inserts a block of rows, with the parameters of `insert` for each.
  let insertBlock: String
  /// The number of parameters of `insert`.
  let width: Int
  /// The parameter of each slot in `insert`; 0 for one that is not stored.
  let places: [Int]
  let delete: String
  private let table: String
  private let columns: [SlotColumn]

  init(table: String, number: Int32, columns: [SlotColumn]) {
    self.table = table
    self.columns = columns
    slots = columns.indices.filter { columns[$0].isStored }
    var names = ["Z_PK", "Z_ENT", "Z_OPT"]
    var marks = ["?", "\(number)", "?"]
    var places = Array(repeating: 0, count: columns.count)
    var place = 3
    for index in slots {
      places[index] = place
      place += Self.columnNames(columns[index]).count
      for name in Self.columnNames(columns[index]) {
        names.append(name)
        marks.append("?")
      }
    }
    let row = "(\(marks.joined(separator: ", ")))"
    let target = "INTO \(table) (\(names.joined(separator: ", "))) VALUES"
    insert = "INSERT \(target) \(row)"
    insertBlock = "INSERT OR FAIL \(target) \(InsertBlock.values(row))"
    width = marks.count - 1
    self.places = places
    delete = "DELETE FROM \(table) WHERE Z_PK = ? AND IFNULL(Z_OPT, 0) = ?"
  }

  /// The statement that sets the slots' columns and `Z_OPT`; the last parameters are the key and
  /// the expected version.
  func update(slots: [Int]) -> String {
    var terms: [String] = []
    for index in slots {
      for name in Self.columnNames(columns[index]) { terms.append("\(name) = ?") }
    }
    terms.append("Z_OPT = ?")
    return "UPDATE \(table) SET \(terms.joined(separator: ", ")) "
      + "WHERE Z_PK = ? AND IFNULL(Z_OPT, 0) = ?"
  }

  private static func columnNames(_ column: SlotColumn) -> [String] {
    if case .keyAndEntity(let companion, true) = column.form { return [column.name, companion] }
    return [column.name]
  }
}
