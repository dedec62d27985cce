import Foundation
import OpenCoreData

/// Fetches the events of mirrored stores.
///
/// ```swift
/// let request = NSPersistentCloudKitContainerEventRequest.fetchEvents(after: .distantPast)
/// let result = try context.execute(request) as? NSPersistentCloudKitContainerEventResult
/// let events = result?.result as? [NSPersistentCloudKitContainer.Event] ?? []
/// for event in events where !event.succeeded {
///   print(event.type, event.startDate, event.error.map(String.init(describing:)) ?? "")
/// }
/// ```
open class NSPersistentCloudKitContainerEventRequest: NSPersistentStoreRequest,
  StoreIndependentRequest
{
  /// Whether the result is the events, or their number.
  open var resultType = NSPersistentCloudKitContainerEventResult.ResultType.events
  private var date: Date?
  private var event: NSPersistentCloudKitContainer.Event?

  /// Creates a request for all events.
  public required override init() {
    super.init()
  }

  /// A request for the events that began after a moment.
  open class func fetchEvents(after date: Date) -> Self {
    let request = Self()
    request.date = date
    return request
  }

  /// A request for the events that follow another one; nil asks for all.
  open class func fetchEvents(after event: NSPersistentCloudKitContainer.Event?) -> Self {
    let request = Self()
    request.event = event
    return request
  }

  /// Collects the events of the stores, oldest first.
  package func run(
    in coordinator: NSPersistentStoreCoordinator
  ) throws -> NSPersistentStoreResult {
    var events: [NSPersistentCloudKitContainer.Event] = []
    for store in affectedStores ?? coordinator.persistentStores {
      guard let mirror = MirroredStores.shared.mirror(of: store) else { continue }
      let recorded = try mirror.read { metadata in
        try metadata.events(
          startedAfter: date?.timeIntervalSinceReferenceDate,
          following: event?.identifier
        )
      }
      events += recorded.map {
        NSPersistentCloudKitContainer.Event(
          $0,
          storeIdentifier: store.identifier ?? "",
          error: nil
        )
      }
    }
    switch resultType {
    case .events:
      return NSPersistentCloudKitContainerEventResult(resultType, result: events)
    case .countEvents:
      return NSPersistentCloudKitContainerEventResult(
        resultType,
        result: [NSNumber(value: events.count)]
      )
    }
  }
}

/// The events of mirrored stores, or their number.
open class NSPersistentCloudKitContainerEventResult: NSPersistentStoreResult {
  /// The kind of a result.
  public enum ResultType: Int, Sendable {
    /// The events.
    case events = 0
    /// The number of events.
    case countEvents = 1
  }

  /// The events, or an array with their number.
  public let result: Any?
  /// The kind of the result.
  public let resultType: ResultType

  init(_ resultType: ResultType, result: Any?) {
    self.resultType = resultType
    self.result = result
    super.init()
  }
}
