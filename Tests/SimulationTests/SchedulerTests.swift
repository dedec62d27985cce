import Simulation
import Testing

@Suite("The simulation's scheduler")
struct SchedulerTests {
  private let clock = SimulatedClock()
  private let scheduler: SimulationScheduler

  init() { scheduler = SimulationScheduler(seed: 1, clock: clock) }

  private func process(_ number: Int) -> SimulatedProcess {
    SimulatedProcess(name: "process \(number)", number: number, scheduler: scheduler)
  }

  @Test("A run ends where its driver waits for ever while another process asks again and again")
  func abandonedDriver() async {
    let clock = clock
    let (driver, device) = (process(1), process(2))
    let (silence, _) = AsyncStream.makeStream(of: Void.self)
    driver.spawn { for await _ in silence {} }
    device.spawn { while (try? await clock.sleep(seconds: 30)) != nil {} }
    #expect(scheduler.run(until: { false }, driver: driver, patience: 3600) == .abandoned)
    #expect(clock.elapsed < 3700)
  }

  @Test("A run continues while its driver sleeps and works")
  func patientDriver() async {
    let clock = clock
    let (driver, device) = (process(1), process(2))
    driver.spawn { for _ in 0..<10 { try? await clock.sleep(seconds: 3000) } }
    device.spawn { while (try? await clock.sleep(seconds: 30)) != nil {} }
    let ending = scheduler.run(
      until: { clock.elapsed >= 30_000 },
      driver: driver,
      patience: 3600
    )
    #expect(ending == .finished)
  }
}
