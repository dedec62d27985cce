import ArgumentParser
import CloudKitServer
import Effects
import Foundation

/// `watershed cktool`: the verbs of Apple's `cktool` under their own names, so that its scripts
/// only need one more word.
struct CktoolCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "cktool",
    abstract: "The verbs of cktool under their own names, for scripts that were written for it.",
    discussion: """
      alias cktool='watershed cktool'. The server is chosen by --server, by \
      WATERSHED_SERVER, or by the folder of a server of this machine. As in cktool, --token is a \
      management token for schemas and teams, and a user token for records.
      """,
    subcommands: [
      TokensCommand.Save.self, TokensCommand.Forget.self, Teams.self, SchemaExportCommand.self,
      SchemaImportCommand.self, SchemaValidateCommand.self, SchemaResetCommand.self,
      RecordsCommand.Create.self, RecordsCommand.Query.self, RecordsCommand.Update.self,
      RecordsCommand.Delete.self, RecordsCommand.DeleteMatching.self,
    ]
  )

  /// `get-teams`: the holder of the management token is an administrator of the one server.
  struct Teams: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "get-teams",
      abstract: "Print the one team of a server, if the token is valid."
    )

    /// Ten characters, like Apple's.
    static let identifier = "WATERSHED0"

    @OptionGroup var server: ServerOptions
    @OptionGroup var output: OutputOptions

    private struct Team: Encodable {
      var teamId: String
      var name: String
    }

    func run() async throws {
      try await perform("the teams cannot be listed") {
        let status: CloudKitService.ServerStatus = try await server.connect {
          try await $0.call(.server(.status), NoReply())
        }
        let team = Team(teamId: Self.identifier, name: "Watershed at \(status.baseURL)")
        guard output.output == nil else {
          return try output.write(
            "teams",
            [team],
            columns: [[team.teamId, team.name]],
            titles: ["team", "name"]
          )
        }
        // Also into a pipe, because scripts parse cktool's lines.
        try StandardOutput.print("\(team.teamId): \(team.name)")
      }
    }
  }
}
