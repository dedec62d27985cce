// swift-tools-version: 6.2
import PackageDescription

let package = Package(
  name: "Starter",
  dependencies: [
    .package(name: "watershed", path: "../..")
  ],
  targets: [
    // The model with its classes, and the store.
    .target(
      name: "StarterStore",
      dependencies: [
        .product(name: "CloudKit", package: "watershed"),
        .product(name: "CoreData", package: "watershed"),
      ],
      plugins: [.plugin(name: "CoreDataModels", package: "watershed")]
    ),
    .executableTarget(name: "Starter", dependencies: ["StarterStore"]),
    .testTarget(
      name: "StarterTests",
      dependencies: ["StarterStore", .product(name: "CloudKitTesting", package: "watershed")]
    ),
  ]
)
