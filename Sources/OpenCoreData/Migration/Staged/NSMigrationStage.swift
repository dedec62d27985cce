import Foundation

/// One step of a staged migration; use one of its subclasses.
open class NSMigrationStage: NSObject {
  /// The stage's name in logs.
  // swift-format-ignore: NeverUseImplicitlyUnwrappedOptionals
  open var label: String! = ""

  /// Creates a stage that does nothing.
  public override init() {
    super.init()
  }

  /// The versions of the stage, the oldest first.
  var checksums: [String] { [] }
}
