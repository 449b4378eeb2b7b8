"""Settings with which nbconvert runs notebooks and stores their outputs, without times, versions, and streams in pieces:

JAX_PLATFORMS=cpu .venv/bin/jupyter nbconvert --config .ci/outputs.py notebooks/1_first_tape.ipynb
"""

c = get_config()  # noqa: F821
c.NbConvertApp.export_format = "notebook"
c.NbConvertApp.use_output_suffix = False  # in place
c.FilesWriter.build_directory = ""
c.ExecutePreprocessor.enabled = True
c.ExecutePreprocessor.record_timing = False
c.NotebookExporter.preprocessors = [  # these run after the notebook
    "nbconvert.preprocessors.CoalesceStreamsPreprocessor",
    "nbconvert.preprocessors.ClearMetadataPreprocessor",
]
c.CoalesceStreamsPreprocessor.enabled = True
c.ClearMetadataPreprocessor.enabled = True
c.ClearMetadataPreprocessor.clear_cell_metadata = False
c.ClearMetadataPreprocessor.preserve_nb_metadata_mask = {"kernelspec", ("language_info", "name")}
