import Effects
import Foundation

/// The effects of initializers whose signature, given by Apple, has no parameter for them.
///
/// They supply the name of a new record and the time of a location. Containers and databases use
/// the effects they were created with.
enum ProcessEffects {
  /// The live effects.
  static let current = Effects.live
}
