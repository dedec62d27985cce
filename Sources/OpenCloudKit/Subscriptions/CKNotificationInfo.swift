import CloudKitWebServices
import Foundation
import Synchronization

extension CKSubscription {
  /// The presentation of a notification.
  public typealias NotificationInfo = CKNotificationInfo
}

// Not nested, for the archives' sake: see `CKRecordID`.

/// The presentation of a notification.
public final class CKNotificationInfo: NSObject, NSSecureCoding, NSCopying, @unchecked Sendable {
  // Unchecked: all mutable state is inside `values`.

  private struct Values: Codable, Hashable, Sendable {
    var alertBody: String?
    var alertLocalizationKey: String?
    var alertLocalizationArgs: [String]?
    var title: String?
    var titleLocalizationKey: String?
    var titleLocalizationArgs: [String]?
    var subtitle: String?
    var subtitleLocalizationKey: String?
    var subtitleLocalizationArgs: [String]?
    var alertActionLocalizationKey: String?
    var alertLaunchImage: String?
    var soundName: String?
    var desiredKeys: [String]?
    var shouldBadge = false
    var shouldSendContentAvailable = false
    var shouldSendMutableContent = false
    var category: String?
    var collapseIDKey: String?
  }

  private let values: Mutex<Values>

  /// Creates a presentation; by default it has no alert and no badge and is not silent.
  public init(
    alertBody: String? = nil,
    alertLocalizationKey: String? = nil,
    alertLocalizationArgs: [CKRecord.FieldKey] = [],
    title: String? = nil,
    titleLocalizationKey: String? = nil,
    titleLocalizationArgs: [CKRecord.FieldKey] = [],
    subtitle: String? = nil,
    subtitleLocalizationKey: String? = nil,
    subtitleLocalizationArgs: [CKRecord.FieldKey] = [],
    alertActionLocalizationKey: String? = nil,
    alertLaunchImage: String? = nil,
    soundName: String? = nil,
    desiredKeys: [CKRecord.FieldKey] = [],
    shouldBadge: Bool = false,
    shouldSendContentAvailable: Bool = false,
    shouldSendMutableContent: Bool = false,
    category: String? = nil,
    collapseIDKey: String? = nil
  ) {
    var values = Values()
    values.alertBody = alertBody
    values.alertLocalizationKey = alertLocalizationKey
    values.alertLocalizationArgs = alertLocalizationArgs
    values.title = title
    values.titleLocalizationKey = titleLocalizationKey
    values.titleLocalizationArgs = titleLocalizationArgs
    values.subtitle = subtitle
    values.subtitleLocalizationKey = subtitleLocalizationKey
    values.subtitleLocalizationArgs = subtitleLocalizationArgs
    values.alertActionLocalizationKey = alertActionLocalizationKey
    values.alertLaunchImage = alertLaunchImage
    values.soundName = soundName
    values.desiredKeys = desiredKeys
    values.shouldBadge = shouldBadge
    values.shouldSendContentAvailable = shouldSendContentAvailable
    values.shouldSendMutableContent = shouldSendMutableContent
    values.category = category
    values.collapseIDKey = collapseIDKey
    self.values = Mutex(values)
    super.init()
  }

  private init(values: Values) {
    self.values = Mutex(values)
    super.init()
  }

  private func get<Value: Sendable>(_ keyPath: KeyPath<Values, Value>) -> Value {
    let values = self.values.withLock { $0 }
    return values[keyPath: keyPath]
  }

  /// The text.
  public var alertBody: String? {
    get { get(\.alertBody) }
    set { values.withLock { $0.alertBody = newValue } }
  }

  /// The key of the localized text.
  public var alertLocalizationKey: String? {
    get { get(\.alertLocalizationKey) }
    set { values.withLock { $0.alertLocalizationKey = newValue } }
  }

  /// The fields whose values are the arguments of the localized text.
  public var alertLocalizationArgs: [CKRecord.FieldKey]? {
    get { get(\.alertLocalizationArgs) }
    set { values.withLock { $0.alertLocalizationArgs = newValue } }
  }

  /// The title.
  public var title: String? {
    get { get(\.title) }
    set { values.withLock { $0.title = newValue } }
  }

  /// The key of the localized title.
  public var titleLocalizationKey: String? {
    get { get(\.titleLocalizationKey) }
    set { values.withLock { $0.titleLocalizationKey = newValue } }
  }

  /// The fields whose values are the arguments of the localized title.
  public var titleLocalizationArgs: [CKRecord.FieldKey]? {
    get { get(\.titleLocalizationArgs) }
    set { values.withLock { $0.titleLocalizationArgs = newValue } }
  }

  /// The subtitle.
  public var subtitle: String? {
    get { get(\.subtitle) }
    set { values.withLock { $0.subtitle = newValue } }
  }

  /// The key of the localized subtitle.
  public var subtitleLocalizationKey: String? {
    get { get(\.subtitleLocalizationKey) }
    set { values.withLock { $0.subtitleLocalizationKey = newValue } }
  }

  /// The fields whose values are the arguments of the localized subtitle.
  public var subtitleLocalizationArgs: [CKRecord.FieldKey]? {
    get { get(\.subtitleLocalizationArgs) }
    set { values.withLock { $0.subtitleLocalizationArgs = newValue } }
  }

  /// The key of the button's localized text.
  public var alertActionLocalizationKey: String? {
    get { get(\.alertActionLocalizationKey) }
    set { values.withLock { $0.alertActionLocalizationKey = newValue } }
  }

  /// The image shown when the app is launched.
  public var alertLaunchImage: String? {
    get { get(\.alertLaunchImage) }
    set { values.withLock { $0.alertLaunchImage = newValue } }
  }

  /// The sound.
  public var soundName: String? {
    get { get(\.soundName) }
    set { values.withLock { $0.soundName = newValue } }
  }

  /// The fields that the notification carries.
  public var desiredKeys: [CKRecord.FieldKey]? {
    get { get(\.desiredKeys) }
    set { values.withLock { $0.desiredKeys = newValue } }
  }

  /// Whether the notification increments the app's badge.
  public var shouldBadge: Bool {
    get { get(\.shouldBadge) }
    set { values.withLock { $0.shouldBadge = newValue } }
  }

  /// Whether the notification wakes the app.
  public var shouldSendContentAvailable: Bool {
    get { get(\.shouldSendContentAvailable) }
    set { values.withLock { $0.shouldSendContentAvailable = newValue } }
  }

  /// Whether the app may modify the notification.
  public var shouldSendMutableContent: Bool {
    get { get(\.shouldSendMutableContent) }
    set { values.withLock { $0.shouldSendMutableContent = newValue } }
  }

  /// The group of actions.
  public var category: String? {
    get { get(\.category) }
    set { values.withLock { $0.category = newValue } }
  }

  /// The key of notifications that replace each other.
  public var collapseIDKey: String? {
    get { get(\.collapseIDKey) }
    set { values.withLock { $0.collapseIDKey = newValue } }
  }

  // MARK: Archives

  /// Whether archives of this class are read securely.
  public static var supportsSecureCoding: Bool { true }

  /// Reads a presentation from an archive.
  public convenience init?(coder: NSCoder) {
    guard let data = coder.decodeIfPresent(of: NSData.self, forKey: "Values"),
      let values = try? PropertyListDecoder().decode(
        Values.self,
        from: Data(referencing: data)
      )
    else { return nil }
    self.init(values: values)
  }

  /// Writes the presentation to an archive.
  public func encode(with coder: NSCoder) {
    guard let data = try? PropertyListEncoder().encode(values.withLock { $0 }) else { return }
    coder.encode(data as NSData, forKey: "Values")
  }

  /// A copy of the presentation with the same contents.
  public func copy(with zone: NSZone? = nil) -> Any {
    CKNotificationInfo(values: values.withLock { $0 })
  }

  /// Whether the other object has the same contents.
  public override func isEqual(_ object: Any?) -> Bool {
    guard let other = object as? CKNotificationInfo else { return false }
    return values.withLock { $0 } == other.values.withLock { $0 }
  }

  /// A hash of the contents.
  public override var hash: Int { values.withLock { $0 }.hashValue }

  // MARK: The wire

  /// The wire's form; it has no member for titles, mutable content or collapsing.
  var wire: NotificationInfo {
    let values = self.values.withLock { $0 }
    return NotificationInfo(
      alertBody: values.alertBody,
      alertLocalizationKey: values.alertLocalizationKey,
      alertLocalizationArgs: values.alertLocalizationArgs,
      alertActionLocalizationKey: values.alertActionLocalizationKey,
      alertLaunchImage: values.alertLaunchImage,
      soundName: values.soundName,
      shouldBadge: values.shouldBadge,
      shouldSendContentAvailable: values.shouldSendContentAvailable,
      additionalFields: values.desiredKeys,
      category: values.category
    )
  }

  convenience init(wire: NotificationInfo) {
    self.init(
      alertBody: wire.alertBody,
      alertLocalizationKey: wire.alertLocalizationKey,
      alertLocalizationArgs: wire.alertLocalizationArgs ?? [],
      alertActionLocalizationKey: wire.alertActionLocalizationKey,
      alertLaunchImage: wire.alertLaunchImage,
      soundName: wire.soundName,
      desiredKeys: wire.additionalFields ?? [],
      shouldBadge: wire.shouldBadge ?? false,
      shouldSendContentAvailable: wire.shouldSendContentAvailable ?? false,
      category: wire.category
    )
  }
}
