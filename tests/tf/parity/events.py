"""What lies in the files that TensorBoard reads, whoever wrote them."""

from __future__ import annotations

import glob
import io
import struct

import numpy as np


def read(folder):
    """The summaries in a folder's files: tag, step, plugin, description, and the value; of images the pixels."""
    from tensorboardX.proto import event_pb2, types_pb2

    found = []
    for file in sorted(glob.glob(f"{folder}/**/*.v2*", recursive=True)):
        with open(file, "rb") as stream:
            data = stream.read()
        while data:
            (size,) = struct.unpack("<Q", data[:8])
            event, data = event_pb2.Event.FromString(data[12 : 12 + size]), data[16 + size :]
            for value in event.summary.value:
                plugin, tensor = value.metadata.plugin_data, value.tensor
                about = value.tag, event.step, plugin.plugin_name, plugin.content, value.metadata.summary_description
                found.append((*map(str, about), types_pb2.DataType.Name(tensor.dtype), values_in(tensor)))
    return found


def values_in(tensor):
    shape = [dim.size for dim in tensor.tensor_shape.dim]
    if tensor.string_val:
        return shape, [picture(text) if text[1:4] == b"PNG" else str(text) for text in tensor.string_val]
    numbers = {1: "f4", 2: "f8", 3: "i4", 9: "i8", 10: "?"}[tensor.dtype]
    return np.frombuffer(tensor.tensor_content, numbers).reshape(shape)


def picture(png):
    import PIL.Image

    return np.asarray(PIL.Image.open(io.BytesIO(png)))
