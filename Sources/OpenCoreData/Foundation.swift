// Code that imports Core Data expects Foundation with it, as with Apple's module.
@_exported import Foundation

#if Macros
@_exported import ManagedMacros
#endif
