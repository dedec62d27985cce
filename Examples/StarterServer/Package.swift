// swift-tools-version: 6.2
import PackageDescription

let package = Package(
  name: "StarterServer",
  dependencies: [
    .package(name: "watershed", path: "../.."),
    .package(url: "https://github.com/hummingbird-project/hummingbird", from: "2.28.1"),
  ],
  targets: [
    // The model with its classes, the store, and the routes.
    .target(
      name: "StarterServerAPI",
      dependencies: [
        .product(name: "CoreData", package: "watershed"),
        .product(name: "Hummingbird", package: "hummingbird"),
      ],
      plugins: [.plugin(name: "CoreDataModels", package: "watershed")]
    ),
    .executableTarget(name: "StarterServer", dependencies: ["StarterServerAPI"]),
    .testTarget(
      name: "StarterServerTests",
      dependencies: [
        "StarterServerAPI", .product(name: "HummingbirdTesting", package: "hummingbird"),
      ]
    ),
  ]
)
