import Foundation

extension CKContainer {
  /// What an app may be allowed to do with people's accounts.
  public struct ApplicationPermissions: OptionSet, Hashable, Sendable {
    /// The bits.
    public let rawValue: UInt

    /// Creates a set of bits.
    public init(rawValue: UInt) {
      self.rawValue = rawValue
    }

    /// The person can be found by others who use the app.
    @available(*, deprecated, message: "Fetch share participants instead")
    public static var userDiscoverability: CKContainer.ApplicationPermissions {
      Self(rawValue: 1)
    }
  }

  /// Whether a person allowed something.
  @available(*, deprecated, message: "Fetch share participants instead")
  public enum ApplicationPermissionStatus: Int, Sendable {
    /// Nobody asked yet.
    case initialState = 0
    /// The service could not be asked.
    case couldNotComplete = 1
    /// The person does not want it.
    case denied = 2
    /// The person allows it.
    case granted = 3
  }

  /// Called with what a person allows.
  @available(*, deprecated, message: "Fetch share participants instead")
  public typealias ApplicationPermissionBlock = (
    CKContainer.ApplicationPermissionStatus, (any Error)?
  ) -> Void

  /// The older names of the permission types.
  @available(*, deprecated, message: "Fetch share participants instead")
  public enum Application {
    /// What an app may be allowed to do.
    public typealias Permissions = CKContainer.ApplicationPermissions
    /// Whether a person allowed something.
    public typealias PermissionStatus = CKContainer.ApplicationPermissionStatus
    /// Called with what a person allows.
    public typealias PermissionBlock = CKContainer.ApplicationPermissionBlock
  }

  /// Whether a person allowed something.
  ///
  /// **Differs from CloudKit:** who can be found is decided where accounts are kept, not in an app.
  /// A person who is signed in has granted what that service allows.
  @available(*, deprecated, message: "Fetch share participants instead")
  public func applicationPermissionStatus(
    for applicationPermission: CKContainer.ApplicationPermissions
  ) async throws -> CKContainer.ApplicationPermissionStatus {
    switch try await accountStatus() {
    case .available: return .granted
    case .couldNotDetermine, .temporarilyUnavailable: return .couldNotComplete
    case .restricted: return .denied
    case .noAccount:
      throw CKError(.notAuthenticated, "Nobody is signed in.")
    }
  }

  /// Asks a person to allow something; see `applicationPermissionStatus(for:)`.
  @available(*, deprecated, message: "Fetch share participants instead")
  public func requestApplicationPermission(
    _ applicationPermission: CKContainer.ApplicationPermissions
  ) async throws -> CKContainer.ApplicationPermissionStatus {
    try await applicationPermissionStatus(for: applicationPermission)
  }

  /// Fetches whether a person allowed something.
  @available(*, deprecated, message: "Fetch share participants instead")
  public func status(
    forApplicationPermission applicationPermission: CKContainer.ApplicationPermissions,
    completionHandler:
      @escaping @Sendable (CKContainer.ApplicationPermissionStatus, (any Error)?) -> Void
  ) {
    hand(
      over: { status, error in completionHandler(status ?? .couldNotComplete, error) },
      { try await $0.applicationPermissionStatus(for: applicationPermission) }
    )
  }

  /// Asks a person to allow something.
  @available(*, deprecated, message: "Fetch share participants instead")
  public func requestApplicationPermission(
    _ applicationPermission: CKContainer.ApplicationPermissions,
    completionHandler:
      @escaping @Sendable (CKContainer.ApplicationPermissionStatus, (any Error)?) -> Void
  ) {
    status(
      forApplicationPermission: applicationPermission,
      completionHandler: completionHandler
    )
  }
}
