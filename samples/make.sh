#!/usr/bin/env bash
# Makes the samples anew, with ffmpeg (built with libx264 and libmp3lame).
set -euo pipefail
cd "$(dirname "$0")"

ffmpeg -v error -y \
  -f lavfi -i "gradients=s=640x360:r=25:d=5:n=4:c0=0x0b3d5c:c1=0x1f8a8a:c2=0xf2b134:c3=0xd9480f:x0=0:y0=0:x1=640:y1=360:speed=0.03:seed=7" \
  -f lavfi -i "aevalsrc='0.2*(sin(2*PI*220*t)+sin(2*PI*277.18*t)+sin(2*PI*329.63*t))':s=48000:d=5" \
  -map 0:v -map 1:a -pix_fmt yuv420p -c:v libx264 -preset slow -crf 22 -g 50 \
  -c:a aac -b:a 64k -af "tremolo=f=3:d=0.4,afade=t=in:d=0.3,afade=t=out:st=4.2:d=0.8" \
  -metadata title="Evening light" -movflags +faststart -fflags +bitexact -flags:v +bitexact -flags:a +bitexact \
  evening-light.mp4

ffmpeg -v error -y \
  -f lavfi -i "aevalsrc='0.3*sin(2*PI*t*(220+110*floor(mod(t*2,4))))*exp(-3*mod(t*2,1))':s=44100:d=6" \
  -c:a libmp3lame -b:a 96k -ac 2 -id3v2_version 3 -metadata title="Four notes" -metadata artist="Attestream" \
  -flags:a +bitexact -fflags +bitexact \
  four-notes.mp3

mkdir -p publication
ffmpeg -v error -y -i evening-light.mp4 -map 0 -c copy -fflags +bitexact -flags:v +bitexact -flags:a +bitexact \
  -f dash -seg_duration 2 -hls_playlist 1 -hls_master_name master.m3u8 \
  -init_seg_name 'init-$RepresentationID$.mp4' -media_seg_name 'fragment-$RepresentationID$-$Number$.m4s' \
  publication/manifest.mpd

# A second language and subtitles, to be packaged with the video as one film.
ffmpeg -v error -y \
  -f lavfi -i "aevalsrc='0.2*(sin(2*PI*196*t)+sin(2*PI*246.94*t)+sin(2*PI*293.66*t))':s=48000:d=5" \
  -c:a aac -b:a 64k -af "tremolo=f=2:d=0.4,afade=t=in:d=0.3,afade=t=out:st=4.2:d=0.8" \
  -metadata:s:a:0 language=deu -movflags +faststart -fflags +bitexact -flags:a +bitexact \
  evening-light.de.m4a
printf 'WEBVTT\n\n00:00.500 --> 00:02.000\nThe sun goes down.\n\n00:02.500 --> 00:04.500\nThe water keeps its light.\n' \
  > evening-light.en.vtt
