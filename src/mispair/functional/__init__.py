"""Pure mathematics: tensors in, tensors or one small frozen result out.

Images are rows, captions are columns. Functions return per-pair values; the caller reduces.
No module, configuration, device, file or log appears here.
"""
