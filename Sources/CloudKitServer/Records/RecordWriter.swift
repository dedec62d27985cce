import CloudKitWebServices
import Effects

/// Decides batches of record operations and commits them: what `ModifyCall` uses.
final class RecordWriter: Sendable {
  let storage: any Storage
  let databases: DatabaseLookup
  let users: UserService
  let assets: AssetService
  let vault: FieldVault
  let renderer: RecordRenderer
  let tokens: ChangeTokens
  let delivery: NotificationDelivery
  let rates: RequestRates
  let limits: ServiceLimits
  let effects: Effects
  let sequenceDevices = SequenceDevices()
  private let writer: StorageWriter

  init(
    storage: any Storage,
    writer: StorageWriter,
    databases: DatabaseLookup,
    users: UserService,
    assets: AssetService,
    vault: FieldVault,
    renderer: RecordRenderer,
    tokens: ChangeTokens,
    delivery: NotificationDelivery,
    rates: RequestRates,
    limits: ServiceLimits,
    effects: Effects
  ) {
    self.storage = storage
    self.writer = writer
    self.databases = databases
    self.users = users
    self.assets = assets
    self.vault = vault
    self.renderer = renderer
    self.tokens = tokens
    self.delivery = delivery
    self.rates = rates
    self.limits = limits
    self.effects = effects
  }

  /// Milliseconds since 1970.
  var now: Int64 { effects.now.wireMilliseconds }

  /// Loads, decides and commits; repeated if the loaded rows were changed in between.
  func commit(_ call: ModifyCall, to id: PartitionID) async throws -> ModifyCall.Outcome {
    let outcome = try await writer.write(to: id) {
      var call = call
      return try call.decide()
    }
    if let device = outcome.recordedDevice {
      let most = limits.sequenceDevices
      sequenceDevices.note(id, call.user, device.name, now: device.time, limit: most)
    }
    return outcome
  }
}
