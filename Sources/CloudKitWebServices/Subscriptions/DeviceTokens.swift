import Foundation

/// The body of `tokens/create` and `tokens/register`.
package struct DeviceTokenRequest: Codable, Hashable, Sendable {
  package var apnsEnvironment: String?
  /// Present in `tokens/register`.
  package var apnsToken: String?
  /// Identifies the device, so that it is not notified of its own changes.
  package var clientId: String?

  package init(
    apnsEnvironment: String? = nil,
    apnsToken: String? = nil,
    clientId: String? = nil
  ) {
    self.apnsEnvironment = apnsEnvironment
    self.apnsToken = apnsToken
    self.clientId = clientId
  }
}

/// The reply of `tokens/create` and `tokens/register`.
package struct DeviceTokenResponse: Codable, Hashable, Sendable {
  package var apnsEnvironment: String
  package var apnsToken: String
  /// The URL of the long poll: it answers with one notification, or with `null` after a timeout.
  package var webcourierURL: String
  /// An extension: the URL of a stream of server-sent events with the same notifications.
  package var eventStreamURL: String?

  package init(
    apnsEnvironment: String,
    apnsToken: String,
    webcourierURL: String,
    eventStreamURL: String? = nil
  ) {
    self.apnsEnvironment = apnsEnvironment
    self.apnsToken = apnsToken
    self.webcourierURL = webcourierURL
    self.eventStreamURL = eventStreamURL
  }
}
