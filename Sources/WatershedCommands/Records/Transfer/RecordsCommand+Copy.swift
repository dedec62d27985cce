import ArgumentParser
import CloudKitServer
import CloudKitWebServices
import Foundation

extension RecordsCommand {
  struct Copy: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Copy records to another database, container or server.",
      discussion: """
        An export into a temporary folder, and an import from it. What is not given for the target is as for the \
        source, so at least one of the --to- options is needed.

        watershed records copy --container-id iCloud.a --user ada --to-container-id iCloud.b
        """
    )

    @OptionGroup var server: ServerOptions
    @OptionGroup var output: OutputOptions
    @OptionGroup var database: DatabaseOptions
    @OptionGroup var selection: SelectionOptions
    @OptionGroup var target: TargetOptions
    @OptionGroup var consent: ConsentOptions
    @Flag(help: "Replace records that exist already; it asks before.") var replace = false

    func run() async throws {
      try await perform("the copy was not completed") {
        let copied = try await TemporaryFolder.with(.copy) { try await copy(through: $0) }
        if let copied { try Import.show(copied, output) }
      }
    }

    /// Nil if the copy was not to be made.
    private func copy(through place: URL) async throws -> RecordImport.Result? {
      let (targetServer, targetDatabase) = try target.options(server, database)
      let exported = try await server.connect { connection in
        try await database.use(connection, printsFiles: false) {
          try await selection.export($0, to: place.path)
        }
      }
      if exported.shares > 0 {
        output.remark("\(Count.of(exported.shares, "share")) not copied: people share again.")
      }
      guard try Import.mayRun(replace, exported.records, targetDatabase, consent, output) else {
        return nil
      }
      return try await targetServer.connect { connection in
        try await targetDatabase.use(connection, printsFiles: false) {
          var work = RecordImport($0, from: RecordFolder(url: place), replaces: replace)
          try await work.run()
          return work.result
        }
      }
    }
  }

  /// The target of a copy.
  struct TargetOptions: ParsableArguments {
    @Option(help: "The target's server, such as https://cloud.example.org.") var toServer: String?
    @Option(help: "The data folder of the target's server, on this machine.") var toData: String?
    @Option(help: "The configuration of the target's server, on this machine.")
    var toConfig: String?
    @Option(help: "The bearer token of an administrator of the target.") var toToken: String?
    @Option(help: "The target's container.") var toContainerId: String?
    @Option(help: "The target's environment.") var toEnvironment: ContainerEnvironment?
    @Option(help: "The target's database: private or public.") var toDatabaseType: DatabaseScope?
    @Option(help: "The user of the target's database.") var toUser: String?
    @Option(help: "A user token of the target.") var toUserToken: String?
    @Option(help: "The API token that goes with it.") var toApiToken: String?

    func validate() throws {
      let given: [Any?] = [
        toServer, toData, toConfig, toToken, toContainerId, toEnvironment, toDatabaseType, toUser,
        toUserToken, toApiToken,
      ]
      guard given.contains(where: { $0 != nil }) else {
        throw ValidationError("Name the target with one of the --to- options.")
      }
    }

    /// The options of the target, with the source's where none is given.
    func options(
      _ server: ServerOptions,
      _ database: DatabaseOptions
    ) throws -> (ServerOptions, DatabaseOptions) {
      var there = server
      let isOther = try isOtherServer(server)
      if toServer != nil || toData != nil || toConfig != nil {
        there.server = toServer
        there.folder = toData
        there.config = toConfig
        there.database = nil
        // Another server gets neither the source's token nor the environment's, which the source uses.
        there.token = try toToken ?? (isOther ? toServer.flatMap(Self.savedToken) : server.token)
      } else if let toToken {
        there.token = toToken
      }
      var target = database
      target.containerId = toContainerId ?? database.containerId
      target.environment = toEnvironment ?? database.environment
      target.databaseType = toDatabaseType ?? database.databaseType
      if toUser != nil || toUserToken != nil {
        target.user = toUser
        target.userToken = toUserToken
      }
      if isOther { target.userToken = toUserToken ?? "" }
      if toUserToken != nil || toContainerId != nil || toServer != nil || toData != nil
        || toConfig != nil || toEnvironment != nil
      {
        // An API token names a container of a server.
        target.apiToken = toApiToken
      }
      return (there, target)
    }

    /// Whether the target is on another server than the source, whose tokens are not for it.
    private func isOtherServer(_ source: ServerOptions) throws -> Bool {
      if toData != nil || toConfig != nil { return true }
      guard let toServer, let target = try ServerOptions.remote(toServer) else { return false }
      return try source.remote().map { !SavedTokens.isOne($0, target) } ?? true
    }

    /// The management token that is saved for a server; empty if there is none.
    private static func savedToken(for server: String) throws -> String {
      SavedTokens.read().token(.management, for: try ServerOptions.remote(server)) ?? ""
    }
  }
}
