import Effects
import Foundation

/// The doors used by initializers that Apple gives no parameters for.
///
/// A record name made up, the time of a location. Containers and databases use the effects they
/// were given instead.
enum ProcessEffects {
  /// The live doors.
  static let current = Effects.live
}
