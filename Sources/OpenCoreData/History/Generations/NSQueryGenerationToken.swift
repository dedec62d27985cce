import Foundation
import Synchronization

/// A generation of a coordinator's stores: their state at one time, which contexts can read later.
///
/// ```swift
/// try context.setQueryGenerationFrom(.current)
/// let posts = try context.fetch(NSFetchRequest<Post>(entityName: "Post"))
/// ```
///
/// A context returns it as its `queryGenerationToken` and accepts it in
/// `setQueryGenerationFrom(_:)`; several contexts may share one. While a token exists, or a context
/// is pinned to it, each SQLite store keeps that state in its write-ahead log. The log may grow by
/// 64 MB for it, and a store has at most 64 generations; then the oldest expires, a warning is
/// logged, and fetches of contexts pinned to it fail with `NSCoreDataError`.
///
/// Tokens may be used on any thread.
///
/// **Differs from Core Data:** an archived token names its generation within the process that made
/// it and while that process holds it; anywhere else it has expired. A generation expires as well when a
/// context needs a large value of it whose file has been removed by another program.
open class NSQueryGenerationToken: NSObject, NSCopying, NSSecureCoding, @unchecked Sendable {
  // Sendable: immutable; generations guard themselves.

  /// The generations by the number of their store in its coordinator.
  let generations: [Int32: StoreGeneration]
  /// The coordinator's stores at the time of pinning; later ones are not visible.
  let stores: Set<Int32>
  /// Nil in the token that stands for the current generation.
  private let number: Int?

  private struct Live: Sendable {
    weak var token: NSQueryGenerationToken?
  }

  private static let lastNumber = Atomic<Int>(0)
  private static let live = Mutex<[Int: Live]>([:])
  private static let numberKey = "NSQueryGenerationToken"
  private static let processKey = "NSQueryGenerationTokenProcess"
  private static let process = "\(ProcessInfo.processInfo.globallyUniqueString)"

  private static let currentToken = NSQueryGenerationToken()

  /// The newest generation: a context with this token pins itself at its first read.
  open class var current: NSQueryGenerationToken { currentToken }

  private override init() {
    generations = [:]
    stores = []
    number = nil
    super.init()
  }

  init(generations: [Int32: StoreGeneration], stores: Set<Int32>) {
    self.generations = generations
    self.stores = stores
    let number = Self.lastNumber.wrappingAdd(1, ordering: .relaxed).newValue
    self.number = number
    super.init()
    Self.live.withLock { live in
      live = live.filter { $0.value.token != nil }
      live[number] = Live(token: self)
    }
  }

  /// Reads a token from an archive; nil if its generation does not exist.
  public required init?(coder: NSCoder) {
    let process = coder.decodeObject(of: NSString.self, forKey: Self.processKey) as String?
    guard process == Self.process else { return nil }
    let number = coder.decodeInteger(forKey: Self.numberKey)
    let known: NSQueryGenerationToken? =
      number == 0 ? Self.currentToken : Self.live.withLock { $0[number]?.token }
    guard let known else { return nil }
    generations = known.generations
    stores = known.stores
    self.number = known.number
    super.init()
  }

  /// Writes the token into an archive.
  open func encode(with coder: NSCoder) {
    coder.encode(Self.process as NSString, forKey: Self.processKey)
    coder.encode(number ?? 0, forKey: Self.numberKey)
  }

  /// Whether archives of this class are read securely.
  public static var supportsSecureCoding: Bool { true }

  /// The token itself: it never changes.
  open func copy(with zone: NSZone? = nil) -> Any { self }

  open override func isEqual(_ object: Any?) -> Bool {
    guard let other = object as? NSQueryGenerationToken else { return false }
    return number == other.number
  }

  open override var hash: Int { number ?? 0 }

  open override var description: String {
    "<NSQueryGenerationToken: \(number.map(String.init) ?? "current")>"
  }

  var isCurrent: Bool { number == nil }

  /// The generation number in row caches: it distinguishes this generation's rows from others'.
  var rowGeneration: UInt32 { 0x8000_0000 | UInt32(truncatingIfNeeded: number ?? 0) }

  var isExpired: Bool { generations.values.contains(where: \.isExpired) }
}
