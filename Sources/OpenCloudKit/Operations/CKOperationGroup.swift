import Effects
import Foundation
import Synchronization

/// Operations that belong together, such as those that one user action starts.
///
/// ```swift
/// let group = CKOperationGroup()
/// group.name = "Import of notes"
/// group.quantity = notes.count
/// let configuration = CKOperation.Configuration()
/// configuration.qualityOfService = .utility
/// group.defaultConfiguration = configuration
/// let operation = CKModifyRecordsOperation(recordsToSave: notes, recordIDsToDelete: nil)
/// operation.group = group
/// ```
///
/// A group supplies a name, and a configuration for the values that its operations leave unset.
public final class CKOperationGroup: NSObject, NSSecureCoding, NSCopying, @unchecked Sendable {
  // Unchecked: all mutable state is inside `state`; configurations are set before operations are
  // queued.

  /// About how much is going to be sent or received.
  public enum TransferSize: Int, Sendable {
    /// Not specified.
    case unknown = 0
    /// Less than a megabyte.
    case kilobytes = 1
    /// Less than ten megabytes.
    case megabytes = 2
    /// Less than a hundred megabytes.
    case tensOfMegabytes = 3
    /// Less than a gigabyte.
    case hundredsOfMegabytes = 4
    /// Less than ten gigabytes.
    case gigabytes = 5
    /// Less than a hundred gigabytes.
    case tensOfGigabytes = 6
    /// More than that.
    case hundredsOfGigabytes = 7
  }

  private struct State {
    var configuration = CKOperation.Configuration()
    var name: String?
    var quantity = 0
    var sendSize = TransferSize.unknown
    var receiveSize = TransferSize.unknown
  }

  /// The group's identifier.
  public let operationGroupID: String
  private let state: Mutex<State>

  /// Creates an empty group.
  public override init() {
    operationGroupID = ProcessEffects.current.uuid().uuidString
    state = Mutex(State())
    super.init()
  }

  /// Creates a group with a name.
  convenience init(name: String) {
    self.init()
    self.name = name
  }

  private init(operationGroupID: String, state: State) {
    self.operationGroupID = operationGroupID
    self.state = Mutex(state)
    super.init()
  }

  // Apple's type: it can be read without unwrapping and set to nil.
  // swift-format-ignore: NeverUseImplicitlyUnwrappedOptionals
  /// The configuration of the group's operations for the values that they leave unset.
  ///
  /// Reading returns a copy; assign it to change the group. Setting it to nil restores the
  /// defaults.
  public var defaultConfiguration: CKOperation.Configuration! {
    get { state.withLock { $0.configuration.duplicate() } }
    set {
      let configuration = newValue?.duplicate() ?? CKOperation.Configuration()
      state.withLock { $0.configuration = configuration }
    }
  }

  /// The purpose of the operations, such as "first sync".
  public var name: String? {
    get { state.withLock { $0.name } }
    set { state.withLock { $0.name = newValue } }
  }

  /// The number of items that the operations process.
  public var quantity: Int {
    get { state.withLock { $0.quantity } }
    set { state.withLock { $0.quantity = newValue } }
  }

  /// About how much is going to be sent.
  public var expectedSendSize: CKOperationGroup.TransferSize {
    get { state.withLock { $0.sendSize } }
    set { state.withLock { $0.sendSize = newValue } }
  }

  /// About how much is going to be received.
  public var expectedReceiveSize: CKOperationGroup.TransferSize {
    get { state.withLock { $0.receiveSize } }
    set { state.withLock { $0.receiveSize = newValue } }
  }

  // MARK: Archives

  /// Whether archives of this class are read securely.
  public static var supportsSecureCoding: Bool { true }

  /// Reads a group from an archive; its operations' configuration is the default one.
  public required init(coder: NSCoder) {
    operationGroupID =
      coder.decodeString(forKey: "OperationGroupID") ?? ProcessEffects.current.uuid().uuidString
    var state = State()
    state.name = coder.decodeString(forKey: "Name")
    state.quantity = coder.integer(forKey: "Quantity")
    state.sendSize = TransferSize(rawValue: coder.integer(forKey: "ExpectedSendSize")) ?? .unknown
    state.receiveSize =
      TransferSize(rawValue: coder.integer(forKey: "ExpectedReceiveSize")) ?? .unknown
    self.state = Mutex(state)
    super.init()
  }

  /// Writes the group to an archive.
  public func encode(with coder: NSCoder) {
    coder.encode(operationGroupID as NSString, forKey: "OperationGroupID")
    coder.encodeIfPresent(name as NSString?, forKey: "Name")
    coder.encode(quantity, forKey: "Quantity")
    coder.encode(expectedSendSize.rawValue, forKey: "ExpectedSendSize")
    coder.encode(expectedReceiveSize.rawValue, forKey: "ExpectedReceiveSize")
  }

  /// A copy of the group with the same identifier and contents.
  public func copy(with zone: NSZone? = nil) -> Any {
    var state = State()
    state.configuration = defaultConfiguration
    state.name = name
    state.quantity = quantity
    state.sendSize = expectedSendSize
    state.receiveSize = expectedReceiveSize
    return CKOperationGroup(operationGroupID: operationGroupID, state: state)
  }

  /// The form CloudKit prints.
  public override var description: String {
    "<CKOperationGroup: \(RecordFormatter.address(of: self)); "
      + "operationGroupID=\(operationGroupID), name=\(name ?? "(null)")>"
  }
}
