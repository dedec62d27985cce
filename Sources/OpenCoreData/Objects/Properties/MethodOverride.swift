import Foundation

/// Whether a class overrides a method that most do not.
///
/// Core Data calls `validateValue(_:forKey:)` for every property of every object that is saved,
/// which costs a box for each value. Where a class does not override it, the typed check does the
/// same without boxes; and loaded objects are not visited once more if their class doesn't override
/// `awakeFromFetch()`. Swift has no API for this, so a method's index in the class's method table
/// is found by comparing two classes of which one overrides it; if that finds no single index,
/// every class counts as overriding.
struct MethodOverride {
  private final class Plain: NSManagedObject {}

  private final class ValidatingValue: NSManagedObject {
    override func validateValue(
      _ value: AutoreleasingUnsafeMutablePointer<AnyObject?>,
      forKey key: String
    ) throws {}
  }

  private final class ReadingByKey: NSManagedObject {
    override func value(forKey key: String) -> Any? { nil }
  }

  private final class ValidatingForUpdate: NSManagedObject {
    override func validateForUpdate() throws {}
  }

  private final class AwakingFromFetch: NSManagedObject {
    override func awakeFromFetch() {}
  }

  private final class TurningIntoFault: NSManagedObject {
    override func willTurnIntoFault() {}
  }

  private final class TurnedIntoFault: NSManagedObject {
    override func didTurnIntoFault() {}
  }

  static let validateValue = MethodOverride(seenIn: ValidatingValue.self)
  static let valueForKey = MethodOverride(seenIn: ReadingByKey.self)
  static let validateForUpdate = MethodOverride(seenIn: ValidatingForUpdate.self)
  static let awakeFromFetch = MethodOverride(seenIn: AwakingFromFetch.self)

  static let willTurnIntoFault = MethodOverride(seenIn: TurningIntoFault.self)
  static let didTurnIntoFault = MethodOverride(seenIn: TurnedIntoFault.self)

  private let place: Int?

  func isPresent(in type: NSManagedObject.Type) -> Bool {
    guard let place, let base = ClassMetadata.words(of: NSManagedObject.self),
      let own = ClassMetadata.words(of: type), place < own.count
    else { return true }
    return own[place] != base[place]
  }

  private init(seenIn overriding: NSManagedObject.Type) {
    guard let base = ClassMetadata.words(of: NSManagedObject.self),
      let plain = ClassMetadata.words(of: Plain.self),
      let overriding = ClassMetadata.words(of: overriding), plain.count >= base.count,
      overriding.count >= base.count
    else {
      place = nil
      return
    }
    let places = (ClassMetadata.firstMethod..<base.count).filter {
      plain[$0] == base[$0] && overriding[$0] != base[$0]
    }
    place = places.count == 1 ? places[0] : nil
  }
}
