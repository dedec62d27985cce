import Foundation

/// A position in the history of one or more stores.
///
/// ```swift
/// let coordinator = container.persistentStoreCoordinator
/// if let token = coordinator.currentPersistentHistoryToken(fromStores: nil) {
///   let data = try NSKeyedArchiver.archivedData(
///     withRootObject: token,
///     requiringSecureCoding: true
///   )
///   try data.write(to: tokenURL)
/// }
/// let token = try NSKeyedUnarchiver.unarchivedObject(
///   ofClass: NSPersistentHistoryToken.self,
///   from: Data(contentsOf: tokenURL)
/// )
/// ```
open class NSPersistentHistoryToken: NSObject, NSCopying, NSSecureCoding, @unchecked Sendable {
  // Sendable: immutable.

  /// The last transaction of each store, by the store's identifier.
  package let transactionNumbers: [String: Int64]

  private static let key = "NSPersistentHistoryTokenData"

  package init(transactionNumbers: [String: Int64]) {
    self.transactionNumbers = transactionNumbers
    super.init()
  }

  /// Reads a token from an archive.
  public required init?(coder: NSCoder) {
    let stores = coder.decodeObject(of: [NSArray.self, NSString.self], forKey: Self.key)
    guard let parts = stores as? [String], parts.count.isMultiple(of: 2) else { return nil }
    var numbers: [String: Int64] = [:]
    for index in stride(from: 0, to: parts.count, by: 2) {
      guard let number = Int64(parts[index + 1]) else { return nil }
      numbers[parts[index]] = number
    }
    transactionNumbers = numbers
    super.init()
  }

  /// Writes the token into an archive.
  open func encode(with coder: NSCoder) {
    let parts = transactionNumbers.sorted { $0.key < $1.key }.flatMap { [$0.key, "\($0.value)"] }
    coder.encode(parts as NSArray, forKey: Self.key)
  }

  /// Whether archives of this class are read securely.
  public static var supportsSecureCoding: Bool { true }

  /// The token itself: it never changes.
  open func copy(with zone: NSZone? = nil) -> Any { self }

  open override func isEqual(_ object: Any?) -> Bool {
    (object as? NSPersistentHistoryToken)?.transactionNumbers == transactionNumbers
  }

  /// The order of two positions in the stores that both tokens have: a transaction's token has one
  /// store, a coordinator's all of its stores.
  ///
  /// Nil where they have no store in common, or one store's order is not that of another.
  func order(to other: NSPersistentHistoryToken) -> ComparisonResult? {
    var steps: Set<ComparisonResult> = []
    for (store, number) in transactionNumbers {
      guard let theirs = other.transactionNumbers[store] else { continue }
      steps.insert(
        number < theirs
          ? .orderedAscending : number == theirs ? .orderedSame : .orderedDescending
      )
    }
    guard steps.count != 1 else { return steps.first }
    steps.remove(.orderedSame)
    return steps.count == 1 ? steps.first : nil
  }

  open override var hash: Int { transactionNumbers.hashValue }

  open override var description: String {
    let parts = transactionNumbers.sorted { $0.key < $1.key }.map { "\($0.key): \($0.value)" }
    return "<NSPersistentHistoryToken: {\(parts.joined(separator: ", "))}>"
  }
}
