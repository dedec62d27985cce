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
  /// A server that lets everyone be found answers `granted` for a user who has said nothing.
  @available(*, deprecated, message: "Fetch share participants instead")
  public func applicationPermissionStatus(
    for applicationPermission: CKContainer.ApplicationPermissions
  ) async throws -> CKContainer.ApplicationPermissionStatus {
    try await permissionStatus(granting: nil)
  }

  @available(*, deprecated, message: "Fetch share participants instead")
  private func permissionStatus(
    granting isGranted: Bool?
  ) async throws -> CKContainer.ApplicationPermissionStatus {
    // Renews the user token where that is needed.
    switch try await accountStatus() {
    case .available:
      // Another service decides by itself which users can be found.
      guard let known = try await client().discoverability(granting: isGranted) else {
        return .granted
      }
      return known.isDiscoverable ? .granted : known.isDecided ? .denied : .initialState
    case .couldNotDetermine, .temporarilyUnavailable: return .couldNotComplete
    case .restricted: return .denied
    case .noAccount:
      throw CKError(.notAuthenticated, "No user is signed in.")
    }
  }

  /// Requests a permission: other users find this one from now on.
  ///
  /// **Differs from CloudKit:** there is no system that asks the user, so the app has to ask before it
  /// calls this. A user who has refused stays so.
  @available(*, deprecated, message: "Fetch share participants instead")
  public func requestApplicationPermission(
    _ applicationPermission: CKContainer.ApplicationPermissions
  ) async throws -> CKContainer.ApplicationPermissionStatus {
    guard applicationPermission.contains(.userDiscoverability) else {
      return try await applicationPermissionStatus(for: applicationPermission)
    }
    let status = try await permissionStatus(granting: nil)
    return status == .initialState ? try await permissionStatus(granting: true) : status
  }

  /// Fetches whether the user granted a permission.
  @available(*, deprecated, message: "Fetch share participants instead")
  public func status(
    forApplicationPermission applicationPermission: CKContainer.ApplicationPermissions,
    completionHandler:
      @escaping @Sendable (CKContainer.ApplicationPermissionStatus, (any Error)?) -> Void
  ) {
    complete(
      { status, error in completionHandler(status ?? .couldNotComplete, error) },
      with: { try await $0.applicationPermissionStatus(for: applicationPermission) }
    )
  }

  /// Requests a permission; see the asynchronous function.
  @available(*, deprecated, message: "Fetch share participants instead")
  public func requestApplicationPermission(
    _ applicationPermission: CKContainer.ApplicationPermissions,
    completionHandler:
      @escaping @Sendable (CKContainer.ApplicationPermissionStatus, (any Error)?) -> Void
  ) {
    complete(
      { status, error in completionHandler(status ?? .couldNotComplete, error) },
      with: { try await $0.requestApplicationPermission(applicationPermission) }
    )
  }
}
