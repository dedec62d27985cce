import CloudKitServer
import CloudKitWebServices
import Effects
import Foundation

/// The server of a world: the real service on a real database in a folder, one process after
/// another.
final class SimulatedServer: @unchecked Sendable {
  // Unchecked: used by the one thread of a run.
  static let container = "iCloud.simulated"

  private let world: SimulatedWorld
  private var run = 0
  private var folder: URL
  private(set) var backup: URL?
  /// The step of the plan before which the backup was made.
  private(set) var backupStep: Int?
  private(set) var process: SimulatedProcess?
  private(set) var service: CloudKitService?
  var isFull = false
  var clockOffset = 0.0 {
    didSet { process?.clockOffset = clockOffset }
  }

  init(world: SimulatedWorld) {
    self.world = world
    folder = world.folder.appendingPathComponent("server.0", isDirectory: true)
  }

  /// Opens the data and answers requests.
  func start() async throws {
    run += 1
    let process = world.process("server", person: nil)
    process.clockOffset = clockOffset
    let effects = process.effects(
      seed: SeedMixing.mix(world.plan.seed, "server", run),
      plantedBug: world.plantedBug
    )
    let service = try CloudKitService(
      ServiceConfiguration(
        dataFolder: folder,
        baseURL: "http://server.simulated",
        limits: limits(),
        effects: effects
      )
    )
    self.process = process
    self.service = service
    world.network.server = (service, process)
    process.spawn { await service.runMaintenance() }
  }

  private func limits() -> ServiceLimits {
    var limits = ServiceLimits()
    limits.passwordRounds = 1
    limits.passwordRule = .any
    // People do not sign in again within a world; other scenarios are about that.
    let years = 50.0 * 365 * 24 * 60 * 60
    limits.sessionLifetime = years
    limits.keptSessionLifetime = years
    limits.sessionAge = years
    limits.keptSessionAge = years
    limits.refreshTokenLifetime = years
    limits.eventPollInterval = 60
    if isFull { limits.userQuota = 1 }
    return limits
  }

  /// Ends the process as a crash does: what is on the disk stays.
  func kill() {
    guard let process else { return }
    copyFolder(to: "server.\(run)")
    process.kill()
    let service = self.service
    world.endedProcesses.append((process, { await service?.shutdown() }))
    self.process = nil
    self.service = nil
    world.network.server = nil
    world.network.breakConnections(of: nil)
  }

  func backUp() throws {
    let url = world.folder.appendingPathComponent("server.backup.\(world.oracle.step)")
    try? FileManager.default.removeItem(at: url)
    try world.copyFiles(from: folder, to: url)
    backup = url
    backupStep = world.oracle.step
  }

  /// Replaces the data with those of the backup; the next start has them.
  func putBackupInPlace() throws {
    guard let backup else { return }
    run += 1
    let next = world.folder.appendingPathComponent("server.\(run).restored", isDirectory: true)
    try world.copyFiles(from: backup, to: next)
    folder = next
  }

  private func copyFolder(to name: String) {
    let next = world.folder.appendingPathComponent(name, isDirectory: true)
    do {
      try world.copyFiles(from: folder, to: next)
      folder = next
    } catch {
      world.oracle.report(.liveness, "the server's folder could not be copied: \(error)")
    }
  }
}
