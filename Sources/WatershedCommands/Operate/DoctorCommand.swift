import ArgumentParser
import CloudKitServer
import CloudKitWebServices
import Foundation
import OpenCloudKit

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// `watershed doctor`: the problems of a server, with remedies.
struct DoctorCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "doctor",
    abstract: "Check the health of a server; exit code 2 if a check fails."
  )

  @OptionGroup var server: ServerOptions
  @OptionGroup var output: OutputOptions
  @Flag(help: "Only whether the server answers, for the checks of containers; exit code 1 if not.")
  var onlyServer = false

  private struct Finding: Encodable {
    var check: String
    var isGood: Bool
    var detail: String
    var remedy: String?
  }

  func run() async throws {
    if onlyServer {
      let finding = await admin(mayBeStopped: false)
      try output.write(finding, text: finding.detail)
      if !finding.isGood { throw ExitCode.failure }
      return
    }
    try await perform("the server could not be checked") {
      var findings = [configuration()]
      if try server.remote() != nil {
        findings.append(await admin())
      } else if let settings = try? server.settings() {
        findings += await machine(settings)
      }
      try output.write(
        "findings",
        findings,
        columns: findings.map { finding in
          [
            finding.isGood ? "ok" : "bad", finding.check, finding.detail, finding.remedy ?? "",
          ]
        },
        titles: ["", "check", "finding", "remedy"]
      )
      if findings.contains(where: { !$0.isGood }) { throw ExitCode(ExitCodes.found) }
    }
  }

  private func configuration() -> Finding {
    let found = ConfigurationSource(file: server.config).examine()
    let problems = found.mistakes + (found.configuration?.problems ?? [])
    let all = problems + found.warnings + (found.configuration?.warnings ?? [])
    return Finding(
      check: "configuration",
      isGood: problems.isEmpty,
      detail: all.isEmpty ? "good" : all.joined(separator: "; "),
      remedy: problems.isEmpty ? nil : "watershed config check"
    )
  }

  /// Checks the folder of this machine, and the running server or the data of a stopped one.
  ///
  /// Creates and changes nothing.
  private func machine(_ settings: ServerConfiguration) async -> [Finding] {
    let place = settings.dataURL
    guard FileManager.default.fileExists(atPath: place.path) else {
      return [
        Finding(
          check: "data folder",
          isGood: false,
          detail: "\(place.path) does not exist",
          remedy: "watershed serve --data \(settings.data)"
        )
      ]
    }
    do {
      try UnreadablePlace.check(place)
    } catch {
      return [
        Finding(
          check: "data folder",
          isGood: false,
          detail: error.description,
          remedy: "run it as root or as the server's user: sudo watershed doctor"
        )
      ]
    }
    let running = RunningServerNote.read(in: place)
    var findings = [
      privacy("data folder", place.path, remedy: "chmod 700"),
      owners(place),
      state(of: running, in: place),
    ]
    if running == nil, let port = port(settings) { findings.append(port) }
    findings.append(writing(place.path))
    findings.append(room(place.path))
    for name in ["field-keys.json", "admin-token"] {
      let path = place.appendingPathComponent(name).path
      guard FileManager.default.fileExists(atPath: path) else { continue }
      findings.append(privacy(name, path, remedy: "chmod 600"))
    }
    // A running server has checked its data at its start.
    if running == nil {
      findings += await data(settings)
    } else {
      findings.append(await admin())
    }
    return findings
  }

  private func state(of running: RunningServerNote?, in place: URL) -> Finding {
    if let running {
      return Finding(check: "server", isGood: true, detail: "runs at \(running.url)")
    }
    guard DataFolderLock.isHeld(in: place) else {
      return Finding(check: "server", isGood: true, detail: "does not run")
    }
    return Finding(
      check: "server",
      isGood: false,
      detail: "a process without an address has the data folder locked: a server that starts, or a "
        + "command at work",
      remedy: "wait for it, or find it: fuser \(place.path)/lock"
    )
  }

  /// Whether a server could listen; nil if no configuration names the port.
  private func port(_ settings: ServerConfiguration) -> Finding? {
    let source = ConfigurationSource(file: server.config)
    guard source.file != nil || source.environment["WATERSHED_PORT"] != nil, settings.port != 0
    else { return nil }
    guard let reason = ListeningCheck.problem(host: settings.host, port: settings.port) else {
      return Finding(check: "port", isGood: true, detail: "\(settings.port) is free")
    }
    return Finding(
      check: "port",
      isGood: false,
      detail: "a server cannot listen on \(settings.host):\(settings.port): \(reason)",
      remedy: "stop the program that uses the port, or change port: ss -ltnp"
    )
  }

  private func data(_ settings: ServerConfiguration) async -> [Finding] {
    var configuration = ServiceConfiguration(
      dataFolder: settings.dataURL,
      database: settings.database
    )
    do {
      try settings.apply(to: &configuration, token: "", LogSettings.logger(settings))
      guard try configuration.hasData() else {
        return [
          Finding(
            check: "database",
            isGood: false,
            detail: "there is no data",
            remedy: "name the right --data or --database, or start a server: watershed serve"
          )
        ]
      }
    } catch {
      return [finding("database", CommandFailure(error, doing: ""))]
    }
    return await StorageInspection(configuration).findings.map { finding in
      Finding(
        check: finding.subject,
        isGood: finding.problem == nil,
        detail: finding.problem.map(Self.firstLine) ?? "good",
        remedy: finding.isDamage
          ? "restore a backup: watershed backup restore BACKUP --data NEW" : nil
      )
    }
  }

  /// The free space in bytes below which a backup beside the data, or a day's writes, may not fit.
  private static let leastRoom: Int64 = 100_000_000

  private func room(_ path: String) -> Finding {
    let attributes = try? FileManager.default.attributesOfFileSystem(forPath: path)
    let free = (attributes?[.systemFreeSize] as? NSNumber)?.int64Value ?? .max
    let isGood = free >= Self.leastRoom
    return Finding(
      check: "room",
      isGood: isGood,
      detail: isGood
        ? "there is enough free space" : "\(free / 1_000_000) MB are left on the disk of \(path)",
      remedy: isGood ? nil : "free disk space: without it the server refuses writes"
    )
  }

  /// Whether files can be created in the folder: a file system that had errors becomes read-only.
  private func writing(_ path: String) -> Finding {
    guard access(path, W_OK | X_OK) != 0 else {
      return Finding(check: "writing", isGood: true, detail: "the data folder can be written")
    }
    let code = errno
    return Finding(
      check: "writing",
      isGood: false,
      detail: "\(path) cannot be written: \(String(cString: strerror(code)))",
      remedy: code == EROFS
        ? "find out why the file system is read-only (dmesg), and mount it for writing"
        : "run it as root or as the server's user: sudo watershed doctor"
    )
  }

  /// Whether all that is in the data folder is of one user: the server may use nothing else.
  private func owners(_ place: URL) -> Finding {
    let owner = DataOwner(of: place)
    let foreign = owner?.foreignItems ?? []
    let more = foreign.count - 3
    let names = foreign.prefix(3).joined(separator: ", ") + (more > 0 ? " and \(more) more" : "")
    return Finding(
      check: "owners",
      isGood: foreign.isEmpty,
      detail: foreign.isEmpty
        ? "all files belong to the server's user"
        : "of another user than \(owner?.reference ?? place.path), so the server may not use it: \(names)",
      remedy: owner?.remedy
    )
  }

  /// Whether other users of this machine have no access.
  private func privacy(_ check: String, _ path: String, remedy: String) -> Finding {
    let attributes = try? FileManager.default.attributesOfItem(atPath: path)
    let mode = (attributes?[.posixPermissions] as? NSNumber)?.intValue ?? 0
    let isGood = mode & 0o077 == 0
    return Finding(
      check: check,
      isGood: isGood,
      detail: "\(path) is \(isGood ? "its owner's alone" : "open to others")",
      remedy: isGood ? nil : "\(remedy) \(path)"
    )
  }

  /// Whether the server answers; the data of a stopped one answers for it unless that is the question.
  private func admin(mayBeStopped: Bool = true) async -> Finding {
    do {
      let status: CloudKitService.ServerStatus = try await server.connect { connection in
        guard mayBeStopped || connection.isRunning else { throw CommandFailure.stopped }
        return try await connection.call(.server(.status), NoReply())
      }
      return Finding(
        check: "admin API",
        isGood: true,
        detail: Count.of(status.users, "account") + ", "
          + Count.of(status.containers.count, "container"),
        remedy: status.hasAdministrator
          ? nil : "no account is an administrator: watershed users add NAME --administrator"
      )
    } catch {
      return finding("admin API", CommandFailure(error, doing: ""))
    }
  }

  /// The finding of a failure; a remedy that is this command is left out.
  private func finding(_ check: String, _ failure: CommandFailure) -> Finding {
    Finding(
      check: check,
      isGood: false,
      detail: Self.firstLine(failure.why),
      remedy: failure.next.contains(CommandFailure.doctor) ? nil : failure.next
    )
  }

  /// PostgreSQL's messages have further lines with advice of their own.
  private static func firstLine(_ text: String) -> String {
    text.split(whereSeparator: \.isNewline).first.map(String.init) ?? text
  }
}

extension CommandFailure {
  /// The failure of a check that a server runs.
  fileprivate static var stopped: CommandFailure {
    CommandFailure(
      "SERVER_STOPPED",
      what: "the server does not answer",
      why: "no server runs on this data folder",
      next: "start it with watershed serve, or name another with --server",
      exit: ExitCodes.unreachable
    )
  }
}
