import Foundation

extension CKContainer {
  /// The permissions that an app can request from users.
  public struct ApplicationPermissions: OptionSet, Hashable, Sendable {
    /// The bits.
    public let rawValue: UInt

    /// Creates a set of bits.
    public init(rawValue: UInt) {
      self.rawValue = rawValue
    }

    /// Other users of the app can find the user.
    @available(*, deprecated, message: "Fetch share participants instead")
    public static var userDiscoverability: CKContainer.ApplicationPermissions {
      Self(rawValue: 1)
    }
  }

  /// The status of a permission.
  @available(*, deprecated, message: "Fetch share participants instead")
  public enum ApplicationPermissionStatus: Int, Sendable {
    /// The permission was not requested yet.
    case initialState = 0
    /// The service could not be reached.
    case couldNotComplete = 1
    /// The user denied the permission.
    case denied = 2
    /// The user granted the permission.
    case granted = 3
  }

  /// Called with the status of a permission.
  @available(*, deprecated, message: "Fetch share participants instead")
  public typealias ApplicationPermissionBlock = (
    CKContainer.ApplicationPermissionStatus, (any Error)?
  ) -> Void

  /// The older names of the permission types.
  @available(*, deprecated, message: "Fetch share participants instead")
  public enum Application {
    /// The permissions that an app can request.
    public typealias Permissions = CKContainer.ApplicationPermissions
    /// The status of a permission.
    public typealias PermissionStatus = CKContainer.ApplicationPermissionStatus
    /// Called with the status of a permission.
    public typealias PermissionBlock = CKContainer.ApplicationPermissionBlock
  }

  /// Whether the user granted a permission.
  ///
  /// **Differs from CloudKit:** the server that holds the accounts decides which users can be
  /// found, not the app. A signed-in user has granted what that server allows.
  @available(*, deprecated, message: "Fetch share participants instead")
  public func applicationPermissionStatus(
    for applicationPermission: CKContainer.ApplicationPermissions
  ) async throws -> CKContainer.ApplicationPermissionStatus {
    switch try await accountStatus() {
    case .available: return .granted
    case .couldNotDetermine, .temporarilyUnavailable: return .couldNotComplete
    case .restricted: return .denied
    case .noAccount:
      throw CKError(.notAuthenticated, "No user is signed in.")
    }
  }

  /// Requests a permission; see `applicationPermissionStatus(for:)`.
  @available(*, deprecated, message: "Fetch share participants instead")
  public func requestApplicationPermission(
    _ applicationPermission: CKContainer.ApplicationPermissions
  ) async throws -> CKContainer.ApplicationPermissionStatus {
    try await applicationPermissionStatus(for: applicationPermission)
  }

  /// Fetches whether the user granted a permission.
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

  /// Requests a permission.
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
