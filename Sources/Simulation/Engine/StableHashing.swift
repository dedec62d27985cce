#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// Makes the order of sets and dictionaries a function of what was put into them.
///
/// The standard library mixes the address of a table into its order, so two runs of one seed would differ.
/// `SWIFT_DETERMINISTIC_HASHING` turns that off when a process begins; this does the same for a process that
/// runs already. The seed of the process stays, and tables that exist keep the seed that they have. Two
/// processes agree only with the variable.
enum StableHashing {
  /// The runtime's `_SwiftHashingParameters`: two words of seed, then whether hashing is deterministic.
  private static let offsetOfFlag = 16

  static func turnOn() {
    guard let program = dlopen(nil, RTLD_NOW),
      let parameters = dlsym(program, "_swift_stdlib_Hashing_parameters")
    else { return }
    parameters.storeBytes(of: true, toByteOffset: offsetOfFlag, as: Bool.self)
  }
}
