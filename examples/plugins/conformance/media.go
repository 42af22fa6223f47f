package main

import (
	"bytes"
	"encoding/binary"
	"image"
	"image/color"
	"image/png"
)

// redPixel is a PNG image of one red pixel.
func redPixel() []byte {
	img := image.NewRGBA(image.Rect(0, 0, 1, 1))
	img.Set(0, 0, color.RGBA{R: 255, A: 255})
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		panic("an image of one pixel cannot be encoded: " + err.Error())
	}
	return b.Bytes()
}

// silence is a WAV file (mono, 8 kHz, 16 bits) of two samples of nothing.
func silence() []byte {
	samples := make([]byte, 4)
	b := []byte("RIFF")
	b = binary.LittleEndian.AppendUint32(b, uint32(36+len(samples)))
	b = append(b, "WAVEfmt "...)
	b = binary.LittleEndian.AppendUint32(b, 16)   // length of the format chunk
	b = binary.LittleEndian.AppendUint16(b, 1)    // PCM
	b = binary.LittleEndian.AppendUint16(b, 1)    // channels
	b = binary.LittleEndian.AppendUint32(b, 8000) // samples a second
	b = binary.LittleEndian.AppendUint32(b, 16000)
	b = binary.LittleEndian.AppendUint16(b, 2)  // bytes a sample
	b = binary.LittleEndian.AppendUint16(b, 16) // bits a sample
	b = append(b, "data"...)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(samples)))
	return append(b, samples...)
}
