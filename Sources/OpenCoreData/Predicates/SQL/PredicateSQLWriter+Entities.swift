import Foundation

extension PredicateSQLWriter {
  /// `entity == %@`, `entity != %@` and `entity IN %@`: these compare a row's own entity, without
  /// subentities.
  ///
  /// Nil if the comparison is another one.
  func entityTest(_ comparison: ComparisonTree) -> SQLFragment? {
    guard case .keyPath(.evaluatedObject, let keys) = comparison.left, keys == ["entity"],
      case .constant(let constant) = comparison.right
    else { return nil }
    let isWanted: Bool
    switch comparison.comparison {
    case .equal, .in: isWanted = true
    case .notEqual: isWanted = false
    default: return nil
    }
    var numbers: [Int32] = []
    for member in constant.value.members {
      guard case .opaque(let value) = member, let entity = value as? NSEntityDescription else {
        return nil
      }
      numbers += naming.sqlEntityNumbers(ofEntity: entity.name ?? "", includesSubentities: false)
    }
    let list = numbers.map(String.init).joined(separator: ", ")
    return SQLFragment("\(root.alias).Z_ENT \(isWanted ? "" : "NOT ")IN (\(list))")
  }
}
