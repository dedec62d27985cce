import ArgumentParser
import CloudKitWebServices

/// `watershed subscriptions`: the subscriptions of a user.
struct SubscriptionsCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "subscriptions",
    abstract: "Subscriptions of a user in a database: list, delete.",
    subcommands: [List.self, Delete.self]
  )

  struct List: AsyncParsableCommand {
    static let configuration = CommandConfiguration(abstract: "List the subscriptions.")

    @OptionGroup var target: DatabaseTarget

    func run() async throws {
      try await perform("the subscriptions cannot be listed") {
        let reply: SubscriptionsResponse = try await target.open {
          try await $0.call(.listSubscriptions, NoReply())
        }
        let subscriptions = try reply.subscriptions.map { try $0.get() }
        try target.output.write(
          "subscriptions",
          subscriptions,
          columns: subscriptions.map {
            [
              $0.subscriptionID ?? "", $0.subscriptionType?.rawValue ?? "",
              $0.query?.recordType ?? "", $0.zoneID?.zoneName ?? "",
              ($0.firesOn ?? []).joined(separator: ", "),
            ]
          },
          titles: ["id", "type", "record type", "zone", "fires on"]
        )
      }
    }
  }

  struct Delete: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Delete a subscription; the app that made it is not notified by it any more."
    )

    @OptionGroup var target: DatabaseTarget
    @OptionGroup var consent: ConsentOptions
    @Argument(help: "The subscription's ID.") var id: String

    func run() async throws {
      try await perform("the subscription was not deleted") {
        guard try consent.isGiven(to: "delete the subscription \(id)", target.output) else {
          return
        }
        var subscription = Subscription()
        subscription.subscriptionID = id
        let request = ModifySubscriptionsRequest(operations: [
          SubscriptionOperation(operationType: .delete, subscription: subscription)
        ])
        let reply: SubscriptionsResponse = try await target.open {
          try await $0.call(.modifySubscriptions, request)
        }
        for item in reply.subscriptions { _ = try item.get() }
        try target.output.done("Deleted \(id).", ["subscriptionID": id])
      }
    }
  }
}
