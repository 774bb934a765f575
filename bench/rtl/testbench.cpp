// The board around generated Rocket RTL: clock, reset, a memory of fixed latency, a console, an end.
//
//     testbench IMAGE RL WL CYCLES
//
// IMAGE is what lies in RAM from 0x8000'0000 on. RL is the number of cycles from the edge at which the memory takes a read
// address to the edge at which it offers the first beat (1 = the least possible), WL the same from the last beat of a write to
// its response. Reads are answered in order, one beat a cycle; so are writes; the two do not wait for each other.
// These are the conditions of bench/published/rocket.csv.
//
// Behind the memory-mapped port, one cycle away, there is what the programs of soc/guest use of a 16550 at 0x1000'0000:
//
//     write, offset 0    a byte for the console, here standard output
//     write, offset 1    bit 1 enables the transmitter's interrupt, and the transmitter is always empty: source 8 of the PLIC
//     write, offset 7    (scratch) the end, with this status; the finisher of the soc's board is not within the port's reach
//     read               the code behind the reset vector: the boot ROM jumps to this address; it enters RAM. A program
//                        never reads the UART, so that the two do not meet.
//
// After CYCLES without an end the status is 124, as of timeout(1).

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <fstream>
#include <iterator>
#include <string>
#include <type_traits>
#include <vector>

#include "VExampleRocketSystem.h"
#include "verilated.h"

namespace {

constexpr uint64_t kRam = 0x80000000;
constexpr size_t kRamBytes = 16 << 20;
constexpr uint64_t kUart = 0x10000000;
constexpr int kTimeout = 124;
constexpr uint8_t kUartInterrupt = 1 << 7;
constexpr uint64_t kResetCycles = 100;
// li t0, 1; slli t0, t0, 31; jr t0
constexpr uint32_t kEnterRam[] = {0x00100293, 0x01f29293, 0x00028067};

// What answers a port, byte by byte.
class Memory {
 public:
  explicit Memory(std::vector<uint8_t> image) : bytes_(std::move(image)) { bytes_.resize(kRamBytes); }

  uint8_t read(uint64_t address) const { return inside(address) ? bytes_[address - kRam] : 0; }

  void write(uint64_t address, uint8_t value) {
    if (inside(address)) bytes_[address - kRam] = value;
  }

 private:
  // The program stays below; speculative fetches may leave.
  static bool inside(uint64_t address) { return address >= kRam && address - kRam < kRamBytes; }

  std::vector<uint8_t> bytes_;
};

class Uart {
 public:
  uint8_t read(uint64_t address) const {
    const uint64_t offset = address - kUart;
    return offset < sizeof kEnterRam ? kEnterRam[offset / 4] >> (offset % 4 * 8) : 0;
  }

  void write(uint64_t address, uint8_t value) {
    switch (address - kUart) {
      case 0: std::putchar(value); break;
      case 1: interrupt_ = (value & 2) != 0; break;
      case 7: ended_ = true, status_ = value; break;
      default: break;
    }
  }

  bool interrupt() const { return interrupt_; }
  bool ended() const { return ended_; }
  int status() const { return status_; }

 private:
  bool interrupt_ = false;
  bool ended_ = false;
  int status_ = 0;
};

// The signals of an AXI4 port, from the side of who answers. `Address`, `Data` and `Strobe` depend on the widths.
template <class Address, class Data, class Strobe>
struct Signals {
  CData &aw_ready, &aw_valid, &aw_id;
  Address& aw_addr;
  CData &aw_size, &w_ready, &w_valid;
  Data& w_data;
  Strobe& w_strb;
  CData &w_last, &b_ready, &b_valid, &b_id, &b_resp, &ar_ready, &ar_valid, &ar_id;
  Address& ar_addr;
  CData &ar_len, &ar_size, &r_ready, &r_valid, &r_id;
  Data& r_data;
  CData &r_resp, &r_last;
};

#define SIGNALS(top, port)                                                                                            \
  Signals<std::remove_reference_t<decltype((top).port##_aw_bits_addr)>,                                               \
          std::remove_reference_t<decltype((top).port##_w_bits_data)>,                                                \
          std::remove_reference_t<decltype((top).port##_w_bits_strb)>> {                                              \
    (top).port##_aw_ready, (top).port##_aw_valid, (top).port##_aw_bits_id, (top).port##_aw_bits_addr,                 \
        (top).port##_aw_bits_size, (top).port##_w_ready, (top).port##_w_valid, (top).port##_w_bits_data,              \
        (top).port##_w_bits_strb, (top).port##_w_bits_last, (top).port##_b_ready, (top).port##_b_valid,               \
        (top).port##_b_bits_id, (top).port##_b_bits_resp, (top).port##_ar_ready, (top).port##_ar_valid,               \
        (top).port##_ar_bits_id, (top).port##_ar_bits_addr, (top).port##_ar_bits_len, (top).port##_ar_bits_size,      \
        (top).port##_r_ready, (top).port##_r_valid, (top).port##_r_bits_id, (top).port##_r_bits_data,                 \
        (top).port##_r_bits_resp, (top).port##_r_bits_last                                                            \
  }

// Answers a port with `Target` after fixed latencies. Addresses and write data are taken at once.
template <class S, class Target>
class Port {
 public:
  Port(S signals, Target& target, uint64_t read_latency, uint64_t write_latency)
      : s_(signals), target_(target), read_latency_(read_latency), write_latency_(write_latency) {
    s_.aw_ready = s_.w_ready = s_.ar_ready = 1;
    s_.b_resp = s_.r_resp = 0;
    s_.b_valid = s_.r_valid = 0;
  }

  // Before the edge that ends cycle `now`: what is handed over at it.
  void sample(uint64_t now) {
    if (s_.r_valid && s_.r_ready) {
      Read& read = reads_.front();
      read.address += 1u << read.size;
      if (read.beats-- == 1) reads_.pop_front();
    }
    if (s_.b_valid && s_.b_ready) responses_.pop_front();
    if (s_.ar_valid) reads_.push_back({s_.ar_id, s_.ar_addr, s_.ar_size, s_.ar_len + 1u, now + read_latency_});
    if (s_.aw_valid) writes_.push_back({s_.aw_id, s_.aw_addr, s_.aw_size});
    if (s_.w_valid) beats_.push_back(beat());
    while (!writes_.empty() && !beats_.empty()) {
      Write& write = writes_.front();
      const Beat& beat = beats_.front();
      const uint64_t base = write.address & ~uint64_t{sizeof s_.w_data - 1};
      for (size_t lane = 0; lane < sizeof s_.w_data; lane++)
        if (beat.strobe >> lane & 1) target_.write(base + lane, beat.data[lane]);
      write.address += 1u << write.size;
      if (beat.last) {
        responses_.push_back({write.id, now + write_latency_});
        writes_.pop_front();
      }
      beats_.pop_front();
    }
  }

  // After that edge: what is offered in cycle `now`.
  void drive(uint64_t now) {
    s_.b_valid = !responses_.empty() && responses_.front().from <= now;
    if (s_.b_valid) s_.b_id = responses_.front().id;
    s_.r_valid = !reads_.empty() && reads_.front().from <= now;
    if (!s_.r_valid) return;
    const Read& read = reads_.front();
    const uint64_t base = read.address & ~uint64_t{sizeof s_.r_data - 1};
    uint8_t data[sizeof s_.r_data];
    for (size_t lane = 0; lane < sizeof data; lane++) data[lane] = target_.read(base + lane);
    std::memcpy(&s_.r_data, data, sizeof data);
    s_.r_id = read.id;
    s_.r_last = read.beats == 1;
  }

 private:
  struct Read {
    uint8_t id;
    uint64_t address;
    uint8_t size;
    uint32_t beats;
    uint64_t from;
  };
  struct Write {
    uint8_t id;
    uint64_t address;
    uint8_t size;
  };
  struct Beat {
    uint8_t data[sizeof(std::remove_reference_t<decltype(S::w_data)>)];
    uint64_t strobe;
    bool last;
  };
  struct Response {
    uint8_t id;
    uint64_t from;
  };

  Beat beat() const {
    Beat beat;
    std::memcpy(beat.data, &s_.w_data, sizeof beat.data);
    beat.strobe = s_.w_strb;
    beat.last = s_.w_last;
    return beat;
  }

  S s_;
  Target& target_;
  uint64_t read_latency_;
  uint64_t write_latency_;
  std::deque<Read> reads_;
  std::deque<Write> writes_;
  std::deque<Beat> beats_;
  std::deque<Response> responses_;
};

void reset(VExampleRocketSystem& top, bool on) {
  top.reset = top.debug_reset = top.debug_clockeddmi_dmiReset = on;
  top.resetctrl_hartIsInReset_0 = on;
#if HARTS == 4
  top.resetctrl_hartIsInReset_1 = top.resetctrl_hartIsInReset_2 = top.resetctrl_hartIsInReset_3 = on;
#endif
}

void clock(VExampleRocketSystem& top, bool high) {
  top.clock = top.debug_clock = top.debug_clockeddmi_dmiClock = high;
  top.eval();
}

int run(std::vector<uint8_t> image, uint64_t read_latency, uint64_t write_latency, uint64_t limit) {
  VerilatedContext context;
  VExampleRocketSystem top(&context);
  Memory memory(std::move(image));
  Uart uart;
  auto memory_signals = SIGNALS(top, mem_axi4_0);
  auto uart_signals = SIGNALS(top, mmio_axi4_0);
  Port<decltype(memory_signals), Memory> memory_port(memory_signals, memory, read_latency, write_latency);
  Port<decltype(uart_signals), Uart> uart_port(uart_signals, uart, 1, 1);
  top.l2_frontend_bus_axi4_0_b_ready = top.l2_frontend_bus_axi4_0_r_ready = 1;
  for (uint64_t now = 0; now < limit; now++) {
    reset(top, now < kResetCycles);
    top.interrupts = uart.interrupt() ? kUartInterrupt : 0;
    top.debug_dmactiveAck = top.debug_dmactive;
    clock(top, false);
    if (now >= kResetCycles) {
      memory_port.sample(now);
      uart_port.sample(now);
    }
    clock(top, true);
    if (uart.ended()) return uart.status();
    memory_port.drive(now + 1);
    uart_port.drive(now + 1);
  }
  return kTimeout;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fprintf(stderr, "usage: %s IMAGE RL WL CYCLES\n", argv[0]);
    return 2;
  }
  std::ifstream file(argv[1], std::ios::binary);
  std::vector<uint8_t> image{std::istreambuf_iterator<char>(file), {}};
  if (!file || image.size() > kRamBytes) {
    std::fprintf(stderr, "%s: cannot be read, or larger than RAM\n", argv[1]);
    return 2;
  }
  return run(std::move(image), std::stoull(argv[2]), std::stoull(argv[3]), std::stoull(argv[4]));
}
