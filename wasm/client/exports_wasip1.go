package main

import (
	"unsafe"

	"meanwhile/wasm/client/abi"
)

// guest is the one module of this instance; exports are functions, so it has to
// live at package level.
var guest abi.Module

//go:wasmexport abi
func abiVersion() int32 { return abi.Version }

//go:wasmexport alloc
func alloc(n int32) uint32 {
	b := guest.Buffer(int(n))
	if b == nil {
		return 0
	}
	return uint32(uintptr(unsafe.Pointer(unsafe.SliceData(b))))
}

//go:wasmexport step
func step(wall, mono int64, ptr, n uint32) uint64 { return pack(guest.Step(wall, mono, at(ptr, n))) }

//go:wasmexport view
func view(wall, mono int64, ptr, n uint32) uint64 { return pack(guest.View(wall, mono, at(ptr, n))) }

//go:wasmexport check
func check(ptr, n uint32) uint64 { return pack(guest.Check(at(ptr, n))) }

//go:wasmexport fold
func fold(ptr, n uint32) uint64 { return pack(guest.Fold(at(ptr, n))) }

// at refuses any address but the buffer's own, by a length that none has.
func at(ptr, n uint32) int {
	if b := guest.Buffer(0); n > abi.InputMax || ptr != uint32(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) {
		return -1
	}
	return int(n)
}

func pack(b []byte) uint64 {
	return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b))))<<32 | uint64(len(b))
}
